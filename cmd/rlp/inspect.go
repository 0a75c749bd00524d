package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/launcher/ask"
)

func agentInspectCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "inspect BUNDLE",
		Short: "Print what a bundle is made of and every host function that it could ever call",
		Args:  exactly("a BUNDLE"),
		RunE:  func(_ *cobra.Command, args []string) error { return inspectBundle(a, args[0]) },
	}
}

func inspectBundle(a *app, path string) error {
	b, err := a.reader().OwnBundle(path)
	if err != nil {
		return err
	}
	d, err := ask.Inspect(b, selfPath)
	if err != nil {
		return err
	}
	if a.json {
		return a.printJSON(d)
	}
	fmt.Fprintf(a.stdout, "%s %s\n%s\n", d.Agent, printable(d.Version), printable(d.Description))
	fmt.Fprintf(a.stdout, "bundle  %s\n", d.Digest)
	if p := d.Program; p != nil {
		fmt.Fprintf(a.stdout, "program %s, sha256 %s\n", printable(strings.Join(append([]string{p.Path}, p.Args...), " ")),
			p.SHA256)
	} else {
		fmt.Fprintf(a.stdout, "module  %s, %d bytes, sha256 %s\nimports\n", printable(d.Entry), d.Bytes, d.SHA256)
	}
	for _, im := range d.Imports {
		line := "  " + printable(im.Module+"."+im.Name)
		if im.Family != "" {
			line += "  (needs " + im.Family + ")"
		}
		fmt.Fprintln(a.stdout, line)
	}
	inspectTools(a, d.Tools)
	for _, f := range d.Findings {
		fmt.Fprintln(a.stdout, printable(f.String()))
	}
	if d.Refused != "" {
		fmt.Fprintln(a.stdout, "a launch would refuse it: "+printable(d.Refused))
	}
	return nil
}
