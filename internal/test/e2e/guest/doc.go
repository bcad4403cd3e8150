// Package guest stands in for the runner inside of a container: its only test,
// compiled to an executable and put into an image or run on a folder, looks a
// plugin up with the runner's own code, starts it, and drives it over gRPC with
// fleeting's own client through the life of an instance. The OpenStack plugin
// finds a simulated cloud on the container's loopback.
//
// The end-to-end tests compile it (build tag e2eguest); it does nothing elsewhere.
package guest
