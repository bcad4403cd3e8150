// Package fleet keeps one group of servers: it reserves names, creates servers
// with a bounded number of workers, settles creations whose outcome is in
// doubt, compares what it knows with what the cloud lists, and deletes with
// retries until a server is proved gone.
//
// It knows nothing of OpenStack or of fleeting: the cloud is an interface that
// it declares, and time is read from a function that it is given. It imports
// the standard library only.
package fleet
