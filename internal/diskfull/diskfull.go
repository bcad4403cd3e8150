// Package diskfull tells the failures that more space would mend from others;
// systems have several. It measures nothing.
package diskfull

// Is says whether err is a write for which there was no space: on the disk,
// within a quota, or within the limit on the size of files.
func Is(err error) bool { return is(err) }
