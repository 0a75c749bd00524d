package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/ask"
)

func (a *app) kbDomainsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "domains", Short: "List the domains and what they hold", Args: cobra.NoArgs,
		Long: "Domains are a closed list: the built-in ones, and those of [kb] domains in config.toml.",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withKB(c.Context(), kb.Origin{}, func(s *kbSession) error {
				tallies, err := s.store.Tallies(c.Context())
				if err != nil {
					return err
				}
				type domain struct {
					Name    string `json:"name"`
					Builtin bool   `json:"builtin"`
					Values  uint64 `json:"values"`
					Bytes   uint64 `json:"bytes"`
				}
				list := []domain{}
				for _, t := range tallies {
					list = append(list, domain{t.Domain, slices.Contains(kb.BuiltinDomains(), t.Domain), t.Values, t.Bytes})
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

// An originJSON is where a value comes from, as it is printed.
type originJSON struct {
	Agent  string `json:"agent,omitempty"`
	Run    string `json:"run_id,omitempty"`
	Tenant string `json:"tenant_id"`
	Source string `json:"source,omitempty"`
	Label  string `json:"label"`
	ETag   string `json:"etag,omitempty"`
	Time   string `json:"time"`
}

func originOf(o kb.Origin) originJSON {
	return originJSON{o.Agent, o.Run, o.Tenant, o.Source, o.Label, o.ETag, stamp(o.UnixMS)}
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// who is an origin in one line.
func (o originJSON) who() string {
	text := o.Label
	for _, w := range []struct{ word, of string }{{"agent", o.Agent}, {"run", o.Run}, {"source", o.Source}} {
		if w.of != "" && !(w.word == "source" && w.of == "agent") {
			text += "  " + w.word + " " + w.of
		}
	}
	return printable(text)
}

func (a *app) kbGetCommand() *cobra.Command {
	var raw bool
	c := &cobra.Command{
		Use: "get DOMAIN KEY", Short: "Print a value", Args: onePlace,
		RunE: func(c *cobra.Command, args []string) error {
			domain, key := place(args)
			return a.withKB(c.Context(), kb.Origin{}, func(s *kbSession) error {
				v, err := s.view.Get(c.Context(), domain, key)
				if err != nil {
					return absentIn(err, domain, key)
				}
				if !raw {
					if v.Bytes, err = s.masks.Mask(domain, v.Bytes); err != nil {
						return err
					}
				}
				return a.printValue(domain, key, v, !raw)
			})
		},
	}
	c.Flags().BoolVar(&raw, "raw", false, "as it is stored, personal data and all")
	return c
}

func (a *app) printValue(domain, key string, v kb.Value, masked bool) error {
	if !a.json {
		text := string(v.Bytes)
		if isTerminal(a.stdout) { // what an agent wrote must not steer it
			text = printableLines(text) + "\n"
		}
		_, err := fmt.Fprint(a.stdout, text)
		return err
	}
	d := struct {
		Domain   string     `json:"domain"`
		Key      string     `json:"key"`
		Revision uint64     `json:"revision"`
		Size     int        `json:"size"`
		Masked   bool       `json:"masked"`
		Value    *string    `json:"value,omitempty"`
		Base64   string     `json:"value_base64,omitempty"`
		Origin   originJSON `json:"origin"`
	}{Domain: domain, Key: key, Revision: v.Revision, Size: len(v.Bytes), Masked: masked, Origin: originOf(v.Origin)}
	if utf8.Valid(v.Bytes) {
		text := string(v.Bytes)
		d.Value = &text
	} else {
		d.Base64 = base64.StdEncoding.EncodeToString(v.Bytes)
	}
	return a.printJSON(d)
}

func (a *app) kbPutCommand() *cobra.Command {
	var from, revision string
	c := &cobra.Command{
		Use: "put DOMAIN KEY VALUE", Short: "Store a value", Args: exactly("a DOMAIN", "a KEY", "a VALUE"),
		Long: "VALUE is the text itself, @FILE, or - for stdin. It is labelled trusted: you put it there.",
		Example: `  rlp kb put contacts ada '{"name":"Ada","email":"ada@example.com"}'
  rlp kb put notes plan @plan.md`,
		RunE: func(c *cobra.Command, args []string) error {
			value, err := a.readValue(args[2])
			if err != nil {
				return err
			}
			var expected uint64
			if revision != "" {
				if expected, err = strconv.ParseUint(revision, 10, 64); err != nil {
					return usagef("--revision %s: a whole number; 0 means that nothing is there yet", revision)
				}
			}
			return a.withKB(c.Context(), byOperator(from), func(s *kbSession) error {
				put := func() (uint64, error) { return s.view.Put(c.Context(), args[0], args[1], value) }
				if revision != "" {
					put = func() (uint64, error) { return s.view.CAS(c.Context(), args[0], args[1], value, expected) }
				}
				rev, err := put()
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(map[string]any{"domain": args[0], "key": args[1], "revision": rev})
				}
				if !a.quiet {
					fmt.Fprintf(a.stdout, "%s/%s revision %d\n", args[0], printable(args[1]), rev)
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&from, "source", "", "a `TEXT` that says where the value comes from; operator when left out")
	c.Flags().StringVar(&revision, "revision", "", "only if this is the stored revision (`N`; 0: nothing is there)")
	return c
}

func (a *app) kbDeleteCommand() *cobra.Command {
	return &cobra.Command{
		Use: "delete DOMAIN KEY", Short: "Delete a value; who wrote it stays known", Args: onePlace,
		RunE: func(c *cobra.Command, args []string) error {
			domain, key := place(args)
			return a.withKB(c.Context(), byOperator(""), func(s *kbSession) error {
				if err := s.view.Delete(c.Context(), domain, key); err != nil {
					return absentIn(err, domain, key)
				}
				if a.json {
					return a.printJSON(map[string]any{"domain": domain, "key": key, "deleted": true})
				}
				return nil
			})
		},
	}
}

func (a *app) kbListCommand() *cobra.Command {
	var raw bool
	c := &cobra.Command{
		Use: "list DOMAIN [PREFIX]", Short: "List keys", Args: domainAnd("a PREFIX", 2),
		RunE: func(c *cobra.Command, args []string) error {
			prefix := ""
			if len(args) == 2 {
				prefix = args[1]
			}
			return a.withKB(c.Context(), kb.Origin{}, func(s *kbSession) error {
				type entry struct {
					Key      string     `json:"key"`
					Revision uint64     `json:"revision"`
					Size     int        `json:"size"`
					Origin   originJSON `json:"origin"`
				}
				list := []entry{}
				for e, err := range s.view.List(c.Context(), args[0], prefix) {
					if err == nil && !raw {
						e.Key, err = s.masks.MaskKey(args[0], e.Key)
					}
					if err != nil {
						return err
					}
					list = append(list, entry{e.Key, e.Revision, e.Size, originOf(e.Origin)})
				}
				if a.json {
					return a.printJSON(list)
				}
				for _, e := range list {
					fmt.Fprintf(a.stdout, "%-32s rev %-6d %8d bytes  %s\n", printable(e.Key), e.Revision, e.Size,
						printable(e.Origin.who()))
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

func (a *app) kbSearchCommand() *cobra.Command {
	var raw bool
	var k int
	c := &cobra.Command{
		Use: "search DOMAIN TEXT", Short: "Find the values that suit a text best", Args: exactly("a DOMAIN", "a TEXT"),
		RunE: func(c *cobra.Command, args []string) error {
			if k < 1 || k > kb.MaxHits {
				return usagef("-k %d: a whole number from 1 to %d", k, kb.MaxHits)
			}
			list, err := a.search(c.Context(), kb.Query{Domain: args[0], Text: args[1], K: k, Raw: raw})
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(list)
			}
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

// search is what suits a text best.
func (a *app) search(ctx context.Context, q kb.Query) ([]ask.Hit, error) {
	list := []ask.Hit{}
	err := a.withKB(ctx, kb.Origin{}, func(s *kbSession) error {
		hits, err := s.view.Search(ctx, q)
		for _, h := range hits {
			if err != nil {
				break
			}
			if !q.Raw {
				h.Key, err = s.masks.MaskKey(q.Domain, h.Key)
			}
			label := kb.Untrusted
			if h.Trusted {
				label = kb.Trusted
			}
			list = append(list, ask.Hit{Key: h.Key, Score: h.Score, Snippet: h.Snippet, Label: label})
		}
		return err
	})
	return list, err
}
