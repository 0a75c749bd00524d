//go:build !slim

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// nearWords has c, and every command below it, answer an argument that is none
// with the command that was nearly written, and with the help that has them all.
func nearWords(c *cobra.Command) {
	if rule := c.Args; rule != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := rule(c, args)
			if err == nil || !strings.HasPrefix(err.Error(), "unknown command") {
				return err
			}
			return unknownArgument(c, args[0])
		}
	}
	for _, sub := range c.Commands() {
		nearWords(sub)
	}
}

func unknownArgument(c *cobra.Command, arg string) error {
	if !c.HasAvailableSubCommands() {
		return usagef("%s takes no argument %q; see %s --help", c.CommandPath(), arg, c.CommandPath())
	}
	c.SuggestionsMinimumDistance = 2
	mean := ""
	if near := c.SuggestionsFor(arg); len(near) > 0 {
		mean = fmt.Sprintf("; did you mean %s %s?", c.CommandPath(), strings.Join(near, ", or "))
	}
	return usagef("%s has no command %q%s; see %s --help", c.CommandPath(), arg, mean, c.CommandPath())
}
