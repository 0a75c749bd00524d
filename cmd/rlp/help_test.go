package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	shown "runloop.dev/rlp/internal/base/printable"
)

// The help of every command fits 100 columns.
//
//rlp:holds D17
func TestHelpFitsAPage(t *testing.T) {
	a := &app{}
	root := rootCommand(a)
	root.InitDefaultCompletionCmd()
	commands := 0
	var look func(c *cobra.Command)
	look = func(c *cobra.Command) {
		commands++
		var out bytes.Buffer
		c.SetOut(&out)
		if err := c.Help(); err != nil {
			t.Errorf("%s: %v", c.CommandPath(), err)
		}
		if c.Long == "" && c.Short == "" {
			t.Errorf("%s says nothing of itself", c.CommandPath())
		}
		for _, line := range strings.Split(out.String(), "\n") {
			if n := utf8.RuneCountInString(line); n > pageWidth {
				t.Errorf("%s --help has a line of %d columns: %s", c.CommandPath(), n, line)
			}
		}
		for _, sub := range c.Commands() {
			look(sub)
		}
	}
	look(root)
	if commands < 60 {
		t.Errorf("control: only %d commands", commands)
	}
	if got := shown.Fold("  "+strings.Repeat("word ", 30), pageWidth, ""); !strings.Contains(got, "\n") {
		t.Errorf("control: %q is one line", got)
	}
}
