// Command plugin stands in for a fleeting plugin in the tests of the packager:
// it only tells its version, as every fleeting plugin does.
package main

import "os"

// version is set by the linker.
var version = "dev"

func main() {
	if len(os.Args) == 2 && os.Args[1] == "-version" {
		_, _ = os.Stdout.WriteString("Name:         plugin\nVersion:      " + version + "\nGit ref:      none\n\n")
		return
	}
	os.Exit(1)
}
