package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/knowledge"
)

func (a *app) kbWhyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "why DOMAIN KEY", Short: "Show who wrote a value, and what was there before", Args: onePlace,
		Long: `Why prints who changed a key, oldest first: the first change and the last 31.
Earlier values are not kept.`,
		RunE: func(c *cobra.Command, args []string) error {
			domain, key := place(args)
			return a.withKB(c.Context(), kb.Origin{}, func(s *knowledge.Session) error {
				chain, err := s.Why(c.Context(), domain, key)
				if err != nil {
					return err
				}
				return a.printChain(chain)
			})
		},
	}
}

func (a *app) printChain(chain *knowledge.Chain) error {
	if a.json {
		return a.printJSON(chain)
	}
	fmt.Fprintf(a.stdout, "%s/%s\n", chain.Domain, printable(chain.Key))
	for i, s := range chain.Steps {
		what := fmt.Sprintf("put %d bytes", s.Size)
		if s.Action == "delete" {
			what = "deleted"
		}
		fmt.Fprintf(a.stdout, "  rev %-6d %s  %-18s %s\n", s.Revision, s.Time, what, printable(s.Who()))
		if i == 0 && chain.NotKept > 0 {
			fmt.Fprintf(a.stdout, "  ... %d changes are not remembered\n", chain.NotKept)
		}
	}
	return nil
}
