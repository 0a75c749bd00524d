package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/knowledge"
)

func kbDomainsCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "domains", Short: "List the domains and what they hold", Args: cobra.NoArgs,
		Long: "Domains are a closed list: the built-in ones, and those of [kb] domains in config.toml.",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withKB(c.Context(), kb.Origin{}, func(s *knowledge.Session) error {
				list, err := s.Domains(c.Context())
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(list)
				}
				for _, d := range list {
					fmt.Fprintf(a.stdout, "%-20s %8d values %12d bytes\n", d.Name, d.Values, d.Bytes)
				}
				return nil
			})
		},
	}
}

func kbGetCommand(a *app) *cobra.Command {
	var raw bool
	c := &cobra.Command{
		Use: "get DOMAIN KEY", Short: "Print a value", Args: onePlace,
		RunE: func(c *cobra.Command, args []string) error {
			domain, key := place(args)
			return a.withKB(c.Context(), kb.Origin{}, func(s *knowledge.Session) error {
				v, err := s.Get(c.Context(), domain, key, raw)
				if err != nil {
					return err
				}
				return printValue(a, v)
			})
		},
	}
	c.Flags().BoolVar(&raw, "raw", false, "as it is stored, personal data and all")
	return c
}

func kbPutCommand(a *app) *cobra.Command {
	var from, revision string
	c := &cobra.Command{
		Use: "put DOMAIN KEY VALUE", Short: "Store a value", Args: exactly("a DOMAIN", "a KEY", "a VALUE"),
		Long: "VALUE is the text itself, @FILE, or - for stdin. It is labelled trusted: you put it there.",
		Example: `  rlp kb put contacts ada '{"name":"Ada","email":"ada@example.com"}'
  rlp kb put notes plan @plan.md`,
		RunE: func(c *cobra.Command, args []string) error {
			value, err := readValue(a, args[2])
			if err != nil {
				return err
			}
			var expected *uint64
			if revision != "" {
				n, err := strconv.ParseUint(revision, 10, 64)
				if err != nil {
					return usagef("--revision %s: a whole number; 0 means that nothing is there yet", revision)
				}
				expected = &n
			}
			return a.withKB(c.Context(), byOperator(from), func(s *knowledge.Session) error {
				rev, err := s.Put(c.Context(), args[0], args[1], value, expected)
				if err != nil {
					return err
				}
				return answer(a, map[string]any{"domain": args[0], "key": args[1], "revision": rev},
					"%s/%s revision %d", args[0], printable(args[1]), rev)
			})
		},
	}
	c.Flags().StringVar(&from, "source", "", "a `TEXT` that says where the value comes from; operator when left out")
	c.Flags().StringVar(&revision, "revision", "", "only if this is the stored revision (`N`; 0: nothing is there)")
	return c
}

func kbDeleteCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete DOMAIN KEY", Short: "Delete a value; who wrote it stays known", Args: onePlace,
		RunE: func(c *cobra.Command, args []string) error {
			domain, key := place(args)
			return a.withKB(c.Context(), byOperator(""), func(s *knowledge.Session) error {
				if err := s.Delete(c.Context(), domain, key); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]any{"domain": domain, "key": key, "deleted": true})
				}
				return nil
			})
		},
	}
}

func kbListCommand(a *app) *cobra.Command {
	var raw bool
	c := &cobra.Command{
		Use: "list DOMAIN [PREFIX]", Short: "List keys", Args: domainAnd("a PREFIX", 2),
		RunE: func(c *cobra.Command, args []string) error {
			prefix := ""
			if len(args) == 2 {
				prefix = args[1]
			}
			return a.withKB(c.Context(), kb.Origin{}, func(s *knowledge.Session) error {
				list, err := s.List(c.Context(), args[0], prefix, raw)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(list)
				}
				none(a, len(list), "no keys in "+printable(args[0]+" "+prefix))
				for _, e := range list {
					fmt.Fprintf(a.stdout, "%-32s rev %-6d %8d bytes  %s\n", printable(e.Key), e.Revision, e.Size,
						printable(e.Origin.Who()))
				}
				return nil
			})
		},
	}
	c.Flags().BoolVar(&raw, "raw", false, "keys as they are stored, personal data and all")
	return c
}

// domainAnd is the argument rule of commands that take a DOMAIN and perhaps more.
func domainAnd(more string, most int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < 1 || len(args) > most {
			return usagef("%s takes a DOMAIN, and perhaps %s; see %s --help", c.CommandPath(), more, c.CommandPath())
		}
		return nil
	}
}

func kbSearchCommand(a *app) *cobra.Command {
	var raw bool
	var k int
	c := &cobra.Command{
		Use: "search DOMAIN TEXT", Short: "Find the values that suit a text best", Args: exactly("a DOMAIN", "a TEXT"),
		RunE: func(c *cobra.Command, args []string) error {
			if k < 1 || k > kb.MaxHits {
				return usagef("-k %d: a whole number from 1 to %d", k, kb.MaxHits)
			}
			list, err := knowledge.Search(c.Context(), a.reader(), kb.Query{Domain: args[0], Text: args[1], K: k, Raw: raw})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
			none(a, len(list), "nothing in "+printable(args[0])+" suits "+printable(args[1]))
			for _, h := range list {
				fmt.Fprintf(a.stdout, "%6.2f  %s\n        %s\n", h.Score, printable(h.Key), printable(h.Snippet))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&raw, "raw", false, "search what is stored instead of its masked form")
	c.Flags().IntVarP(&k, "k", "k", kb.DefaultHits, "at most `N` answers")
	return c
}

func printValue(a *app, v *knowledge.Value) error {
	if a.json {
		return a.printJSON(v)
	}
	text := string(v.Bytes)
	if isTerminal(a.stdout) { // what an agent wrote must not steer it
		text = printableLines(text) + "\n"
	}
	_, err := fmt.Fprint(a.stdout, text)
	return err
}

func kbWhyCommand(a *app) *cobra.Command {
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
				return printChain(a, chain)
			})
		},
	}
}

func printChain(a *app, chain *knowledge.Chain) error {
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

// byOperator is where values come from that the operator puts.
func byOperator(from string) kb.Origin {
	if from == "" {
		from = "operator"
	}
	return kb.Origin{Source: from, Label: kb.Trusted}
}

// place is the DOMAIN and KEY of a command, as two arguments or as one.
func place(args []string) (domain, key string) {
	if len(args) == 2 {
		return args[0], args[1]
	}
	domain, key, _ = strings.Cut(args[0], "/")
	return domain, key
}

// onePlace is the argument rule of commands that take a DOMAIN and a KEY.
func onePlace(c *cobra.Command, args []string) error {
	if len(args) == 2 || len(args) == 1 && strings.Contains(args[0], "/") {
		return nil
	}
	return usagef("%s takes a DOMAIN and a KEY; see %s --help", c.CommandPath(), c.CommandPath())
}

// readValue is the value of a put: the text itself, @FILE, or - for stdin.
func readValue(a *app, arg string) ([]byte, error) {
	const most = 1 << 20
	var p []byte
	var err error
	switch {
	case arg == "-":
		p, err = io.ReadAll(io.LimitReader(a.stdin, most+1))
	case strings.HasPrefix(arg, "@"):
		if err := a.reader().OwnPaths(arg[1:]); err != nil {
			return nil, err
		}
		p, err = readAtMost(arg[1:])
	default:
		p = []byte(arg)
	}
	if err != nil {
		return nil, inputErr(err)
	}
	return p, nil
}
