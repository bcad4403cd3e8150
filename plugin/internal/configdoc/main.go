// Command configdoc writes the reference of the plugin's settings from the
// comments in package plugin.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	source := flag.String("source", "config.go", "the file that declares the settings")
	target := flag.String("o", "../docs/reference/configuration.md", "the page to write")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "configdoc: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*source, *target); err != nil {
		fmt.Fprintln(os.Stderr, "configdoc:", err)
		os.Exit(1)
	}
}

func run(source, target string) error {
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	page, err := generate(content)
	if err != nil {
		return err
	}
	return os.WriteFile(target, page, 0o644) //nolint:gosec // a page of the documentation, for all to read
}
