package main

import (
	"flag"
	"fmt"
	"io"
	"strings"

	"github.com/radome-io/fleeting-plugin-openstack/internal/roff"
)

// man writes the manual page, section 1, for packages: what --help says, and
// where the rest stands. It has no date, so that it changes only when a command
// does.
func man(out io.Writer) {
	line := func(macro, text string) { fmt.Fprintf(out, ".%s %s\n", macro, roff.Escape(text)) }
	text := func(s string) { fmt.Fprintln(out, roff.Escape(s)) }
	line("TH", "FLEETING-PLUGIN-OPENSTACK 1")
	line("SH", "NAME")
	text("fleeting-plugin-openstack - lets GitLab Runner create and delete servers on OpenStack")
	line("SH", "SYNOPSIS")
	line("B", "fleeting-plugin-openstack")
	text("[COMMAND [FLAGS]]")
	line("SH", "DESCRIPTION")
	text("GitLab Runner starts it, without arguments, for a [[runners]] entry whose autoscaler names it as its plugin. The commands are for people: they read the same configuration and speak to the same cloud.")
	line("SH", "COMMANDS")
	known := commands()
	for _, name := range order() {
		line("TP", "")
		line("B", name)
		text(known[name].summary)
	}
	for _, w := range words() {
		line("TP", "")
		line("B", strings.TrimSpace(w.name+" "+w.args))
		text(w.summary)
	}
	line("SH", "FLAGS")
	var path, runner, output string
	new(call).flags("cleanup", &path, &runner, &output).VisitAll(func(f *flag.Flag) {
		line("TP", "")
		value, usage := flag.UnquoteUsage(f)
		line("B", strings.TrimSpace("--"+f.Name+" "+value))
		if f.Name == "yes" {
			usage += " (cleanup)"
		}
		text(usage)
	})
	line("SH", "EXIT STATUS")
	text("0 done, 1 failed, 2 wrong usage or configuration.")
	line("SH", "SEE ALSO")
	text("fleeting-plugin(1), https://github.com/radome-io/fleeting-plugin-openstack/tree/main/docs")
}
