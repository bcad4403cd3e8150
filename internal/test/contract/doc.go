// Package contract holds the cases that pin the simulator
// (internal/openstacksim) to the real services.
//
// A case is a list of calls. What a cloud answers, with all that differs from
// run to run replaced by placeholders, is the case's transcript. The
// transcripts under testdata are those of the real Keystone, Nova, Glance,
// Neutron and Cinder of lab/openstack; go test runs every case on the
// simulator and compares. With the build tag contract the same cases run on
// the real services (make contract), which must still answer so; the flag
// -update writes their answers down anew.
//
// Where the two differ, the simulator is wrong.
package contract
