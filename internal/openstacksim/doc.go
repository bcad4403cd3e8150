// Package openstacksim is an OpenStack cloud in memory, served by one
// [net/http.Handler], for tests and for the demo.
//
// It puts the rooms together: keystone, glance, neutron, cinder and nova are the
// services, which stand on cloud (lock, clock, calls) and fault (what can go
// wrong); guest is SSH on the servers. Cinder imports glance, nova imports
// glance, neutron and cinder, and no arrow points back.
//
// To add a call, give it a handler in the room of its service and a line where
// the service adds its calls. To add an action on servers, add a row to the
// table in nova/actions.go.
//
// Servers are built, changed and deleted on a clock that is read, never
// waited for: whatever was due is done when the next call arrives. So a
// simulator without SSH starts no goroutine and works inside a
// [testing/synctest] bubble, where time jumps; use [cloud.Cloud.Transport]
// there, which needs no socket.
//
// Faults are part of the cloud: [cloud.Cloud.Inject] makes calls fail, hang or
// lose their answer after they took effect, and a [Fate] makes a server be
// born in ERROR, build for ever or ignore its deletion.
//
// With [Options.SSH] each server also answers SSH on a loopback address of its
// own and really runs the commands it is given. That is no sandbox: the
// commands run as the user of this process. Only ever listen on loopback.
//
// The answers follow the release Zed of OpenStack; the contract suite
// (internal/test/contract) runs the same cases on the real services. The package
// imports no OpenStack client, and nothing of the plugin that is tested with it.
package openstacksim
