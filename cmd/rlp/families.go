package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps"
)

func (a *app) capsFamiliesCommand() *cobra.Command {
	return &cobra.Command{
		Use: "families", Short: "Print what is known of every family: tier, effects, and what it can do", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			list := familyDocuments()
			if a.json {
				return a.printJSON(list)
			}
			w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "family\tcategory\ttier\teffects\tdestructive\tnetwork\tsandbox\tcalls")
			for _, d := range list {
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Family, d.Category, d.Tier, strings.Join(d.Effects, " "),
					yesNo(d.Destructive), yesNo(d.NetworkFacing), yesNo(d.SandboxSafe), strings.Join(d.Tools, " "))
			}
			return w.Flush()
		},
	}
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// A familyDocument is a row of the table of families.
type familyDocument struct {
	Family        string   `json:"family"`
	Category      string   `json:"category"`
	Tier          string   `json:"privilege_tier"`
	Effects       []string `json:"effects"`
	Destructive   bool     `json:"destructive"`
	NetworkFacing bool     `json:"network_facing"`
	SandboxSafe   bool     `json:"sandbox_safe"`
	Tools         []string `json:"tools"` // the calls that use it
}

// familyDocuments is what is known of every family beside its scopes.
func familyDocuments() []familyDocument {
	list := make([]familyDocument, 0, caps.NumFamilies)
	for f := range caps.NumFamilies {
		m := caps.MetadataOf(f)
		d := familyDocument{
			Family: f.String(), Category: m.Category, Tier: m.Tier.String(), Destructive: m.Destructive,
			NetworkFacing: m.NetworkFacing, SandboxSafe: m.SandboxSafe, Tools: []string{},
		}
		var effects caps.EffectSet
		for mode := range caps.Mode(32) {
			if caps.AllModes(f).Has(mode) {
				effects |= caps.EffectOf(f, mode)
			}
		}
		d.Effects = effects.Words()
		for _, t := range caps.Tools() {
			if t.Family == f {
				d.Tools = append(d.Tools, t.Name)
			}
		}
		list = append(list, d)
	}
	return list
}
