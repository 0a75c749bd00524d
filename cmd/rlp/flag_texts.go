package main

import "fmt"

// textsFlag is a flag that may be given again: pflag's StringArray without the CSV
// writer that each of those makes to say that it is empty.
type textsFlag []string

func (t *textsFlag) Type() string { return "stringArray" }

// String is "" of none, which help does not show as a default.
func (t *textsFlag) String() string {
	if len(*t) == 0 {
		return ""
	}
	return fmt.Sprint([]string(*t))
}

func (t *textsFlag) Set(value string) error {
	*t = append(*t, value)
	return nil
}
