// Command configdoc writes the reference of the plugin's settings from the
// comments in package plugin, and that of clouds.yaml from the keys that package
// cloud knows.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	source := flag.String("source", "config.go", "the file that declares the settings")
	target := flag.String("o", "../docs/reference/configuration.md", "the page to write")
	clouds := flag.String("clouds", "../docs/reference/clouds-yaml.md", "the page about clouds.yaml to write")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "configdoc: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*source, *target, *clouds); err != nil {
		fmt.Fprintln(os.Stderr, "configdoc:", err)
		os.Exit(1)
	}
}

func run(source, target, clouds string) error {
	content, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	page, err := generate(content)
	if err != nil {
		return err
	}
	if err := os.WriteFile(target, page, 0o644); err != nil { //nolint:gosec // a page of the documentation, for all to read
		return err
	}
	return os.WriteFile(clouds, cloudsPage(), 0o644) //nolint:gosec // the same
}
