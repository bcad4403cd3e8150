package peers

import (
	"crypto/rand"
	"os"
	"strings"
)

// generationLength is that of rand.Text, 26 characters of base 32.
const generationLength = 26

// Self describes this process, as one that serves a group from now on.
func Self(group string) Process {
	host, _ := os.Hostname() // unknown then, and so named
	return Process{
		Generation: strings.ToLower(rand.Text()), Group: group, Host: host,
		PID: os.Getpid(), Runner: os.Getppid(), Space: space(),
	}
}

// isGeneration reports whether a text has the form of a generation. Others are
// never made part of a path: they come from servers' metadata.
func isGeneration(text string) bool {
	return len(text) == generationLength && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz234567") == ""
}

// space names the process namespace, on Linux.
func space() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}
