// Package plugin is a fleeting plugin for OpenStack: it lets GitLab Runner
// create servers for jobs when they are needed and delete them when idle.
//
// [InstanceGroup] implements fleeting's provider.InstanceGroup over Nova, by
// the configuration in [Config]. For people there are [Check], [List], [Plan]
// and [Cleanup], which take the same configuration.
//
// It installs no plugin and publishes none; packages packager and installer
// do. It speaks to OpenStack only through plugin/internal/cloud, and leaves
// every decision about the group to plugin/internal/fleet.
package plugin
