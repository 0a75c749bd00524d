package main

import "fmt"

// textsFlag is a flag that may be given again. It is pflag's StringArray without the
// CSV writer that each of those makes to say that it is empty.
type textsFlag []string

// Set implements [pflag.Value].
func (t *textsFlag) Set(value string) error {
	*t = append(*t, value)
	return nil
}

// String implements [pflag.Value].
func (t *textsFlag) String() string { return fmt.Sprint([]string(*t)) }

// Type implements [pflag.Value].
func (t *textsFlag) Type() string { return "stringArray" }
