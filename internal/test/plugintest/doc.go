// Package plugintest makes small plugins as publishers would, and pushes them,
// with signatures, to the registries of tests. Their executables are text, or
// scripts; nothing is compiled.
//
// It writes the bytes itself instead of calling our packager, so that what
// installs is not tested with what packages, and so that it can make what a
// packager never would. Only tests import it.
package plugintest
