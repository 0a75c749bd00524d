package main

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

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
