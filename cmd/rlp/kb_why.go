package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/kb"
)

// A stepJSON is one change of a key, as it is printed.
type stepJSON struct {
	Revision uint64 `json:"revision"`
	Action   string `json:"action"` // put or delete
	Size     int    `json:"size"`
	originJSON
}

func (a *app) kbWhyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "why DOMAIN KEY", Short: "Show who wrote a value, and what was there before", Args: onePlace,
		Long: `Why prints who changed a key, oldest first: the first change and the last 31.
Earlier values are not kept.`,
		RunE: func(c *cobra.Command, args []string) error {
			domain, key := place(args)
			return a.withKB(c.Context(), kb.Origin{}, func(s *kbSession) error {
				chain, err := s.view.Why(c.Context(), domain, key)
				if err != nil {
					return absentIn(err, domain, key)
				}
				return a.printChain(domain, key, chain)
			})
		},
	}
}

func (a *app) printChain(domain, key string, chain kb.Chain) error {
	steps := make([]stepJSON, len(chain.Steps))
	for i, s := range chain.Steps {
		steps[i] = stepJSON{s.Revision, "put", s.Size, originOf(s.Origin)}
		if s.Deleted {
			steps[i].Action = "delete"
		}
	}
	if a.json {
		return a.printJSON(map[string]any{"domain": domain, "key": key, "steps": steps, "not_kept": chain.Left})
	}
	fmt.Fprintf(a.stdout, "%s/%s\n", domain, printable(key))
	for i, s := range steps {
		what := fmt.Sprintf("put %d bytes", s.Size)
		if s.Action == "delete" {
			what = "deleted"
		}
		fmt.Fprintf(a.stdout, "  rev %-6d %s  %-18s %s\n", s.Revision, s.Time, what, printable(s.who()))
		if i == 0 && chain.Left > 0 {
			fmt.Fprintf(a.stdout, "  ... %d changes are not remembered\n", chain.Left)
		}
	}
	return nil
}
