package main

import (
	"fmt"

	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/ask"
)

// printTools prints which tools are attached, and what the others lack.
func printTools(a *app, list []launcher.Attachment) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(a.stdout, "tools")
	for _, t := range list {
		line := "  " + t.ID + "  attached"
		if !t.Attached {
			line = "  " + t.ID + "  not attached: " + t.Reason + " " + t.Capability
			if t.Layer != "" {
				line += "  (" + t.Layer + ")"
			}
		} else if t.RequiresConfirmation {
			line += ", asks before each call"
		}
		fmt.Fprintln(a.stdout, printable(line))
	}
}

func inspectTools(a *app, tools []ask.Tool) {
	if len(tools) == 0 {
		return
	}
	fmt.Fprintln(a.stdout, "tools")
	for _, t := range tools {
		fmt.Fprintln(a.stdout, printable("  "+t.ID+"  "+t.Transport+" "+t.Target))
		for _, c := range t.Capabilities {
			fmt.Fprintln(a.stdout, printable("    needs "+c))
		}
		if t.RequiresConfirmation {
			fmt.Fprintln(a.stdout, "    asks before each call")
		}
	}
}
