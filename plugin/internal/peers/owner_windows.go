package peers

import "syscall"

// nothing is the signal that only asks whether a process is there.
const nothing = syscall.Signal(0)

// userSuffix is empty: the folder for temporary files is the user's own.
func userSuffix() string { return "" }

func owned(string) error { return nil }
