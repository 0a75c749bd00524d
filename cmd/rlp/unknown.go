package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"runloop.dev/rlp/internal/base/config"
	shown "runloop.dev/rlp/internal/base/printable"
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
	return usagef("%s has no command %q%s (%s --help lists all)", c.CommandPath(), arg, mean, c.CommandPath())
}

// foreignFlag is what to write instead of a flag of another system, by whose
// error; "" for what is none.
func foreignFlag(err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return ""
	}
	return config.ForeignFlag(unknown.GetSpecifiedName())
}

// refuseEmpty has a command refuse a flag that is given and empty, as a script
// gives one whose variable is not set: without the flag less would be checked,
// or more be shown, than was asked for.
func refuseEmpty(c *cobra.Command) {
	rule := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		var err error
		c.Flags().Visit(func(f *pflag.Flag) {
			if f.Value.Type() == "string" && f.Value.String() == "" && err == nil {
				err = usagef("--%s is given and empty; give it a value or leave it out", f.Name)
			}
		})
		if err != nil || rule == nil {
			return err
		}
		return rule(c, args)
	}
}

// pageWidth is how wide what is printed for people is, in characters.
const pageWidth = 100

// fitHelp has the help of a command, and of every one below it, fit a page.
func fitHelp(c *cobra.Command) {
	if !c.HasParent() {
		c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), "Flags.FlagUsages ",
			fmt.Sprintf("Flags.FlagUsagesWrapped %d ", pageWidth)))
	}
	c.Long = shown.Fold(c.Long, pageWidth, "")
	for _, sub := range c.Commands() {
		fitHelp(sub)
	}
}
