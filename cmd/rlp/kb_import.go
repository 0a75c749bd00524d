package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/source"
)

func (a *app) kbImportCommand() *cobra.Command {
	var domain string
	var o source.Options
	c := &cobra.Command{
		Use: "import DIR|JSONL --domain DOMAIN", Short: "Store documents of a folder or a JSONL file",
		Args: exactly("a DIR or JSONL"),
		Long: `Import stores each regular file of a folder under its path, or each line of a
JSONL file under its "id" (without one: under its digest). Documents are parsed
and never executed, and are labelled untrusted. What has the same version as what
is stored is left as it is: its "meta.etag", or its digest. Links, special files,
what begins with a dot, what is larger than 1 MiB and the home of rlp are left
out, and said. What is stored and is no more in the source stays.`,
		Example: "  rlp kb import ~/notes --domain notes\n  rlp kb import export.jsonl --domain contacts --prefix crm/",
		RunE: func(c *cobra.Command, args []string) error {
			if domain == "" {
				return usagef("rlp kb import needs --domain; rlp kb domains shows which there are")
			}
			if err := a.reader().OwnPaths(args[0]); err != nil {
				return err
			}
			h, err := a.home()
			if err != nil {
				return err
			}
			if o.Home, err = os.Stat(h.Dir()); err != nil {
				return inputErr(err)
			}
			return a.withKB(c.Context(), kb.Origin{}, func(s *kbSession) error {
				im := &kbImport{
					kbSession: s, domain: domain, Tenant: s.tenant, Domain: domain, Records: []importedJSON{},
					Skipped: []source.Skipped{},
				}
				skipped, err := source.Read(c.Context(), args[0], o, func(d source.Document) error {
					return im.take(c.Context(), d)
				})
				if err != nil {
					return err
				}
				if err := im.flush(c.Context()); err != nil {
					return err
				}
				im.Skipped = append(im.Skipped, skipped...)
				return im.print()
			})
		},
	}
	c.Flags().StringVar(&domain, "domain", "", "the `DOMAIN` where the documents go")
	c.Flags().StringVar(&o.Prefix, "prefix", "", "begin every key with this `TEXT`")
	c.Flags().BoolVar(&o.Hidden, "hidden", false, "what begins with a dot too")
	return c
}

// A kbImport is an import under way, and its report.
type kbImport struct {
	*kbSession `json:"-"`
	domain     string
	Tenant     string           `json:"tenant_id"`
	Domain     string           `json:"domain"`
	Added      int              `json:"added"`
	Changed    int              `json:"changed"`
	Unchanged  int              `json:"unchanged"`
	Records    []importedJSON   `json:"records"`
	Skipped    []source.Skipped `json:"skipped"`

	waiting []kb.Item // to be stored together
	at      []int     // their places in Records
	bytes   int       // of their values
}

type importedJSON struct {
	Key      string `json:"key"`
	Tenant   string `json:"tenant_id"`
	Status   string `json:"status"` // added, changed or unchanged
	Revision uint64 `json:"revision"`
	ETag     string `json:"etag"`
	Source   string `json:"source"`
	Label    string `json:"label"`
}

// take stores one document, unless that version of it is stored.
func (im *kbImport) take(ctx context.Context, d source.Document) error {
	o := kb.Origin{Source: d.Source, Label: kb.Untrusted, ETag: d.ETag}
	was, err := im.view.Get(ctx, im.domain, d.Key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r := importedJSON{
		Key: d.Key, Tenant: im.Tenant, Status: "unchanged", Revision: was.Revision, ETag: d.ETag,
		Source: d.Source, Label: o.Label,
	}
	switch {
	case err == nil && was.Origin.ETag == d.ETag:
		im.Unchanged++
		im.Records = append(im.Records, r)
		return nil
	case err == nil:
		im.Changed++
		r.Status = "changed"
	default:
		im.Added++
		r.Status = "added"
	}
	if len(im.waiting) == kb.MaxItems || im.bytes+len(d.Value) > kb.MaxItemBytes {
		if err := im.flush(ctx); err != nil {
			return err
		}
	}
	im.waiting = append(im.waiting, kb.Item{Key: d.Key, Value: d.Value, Origin: o, Revision: was.Revision})
	im.at, im.bytes = append(im.at, len(im.Records)), im.bytes+len(d.Value)
	im.Records = append(im.Records, r)
	return nil
}

// flush stores what is waiting.
func (im *kbImport) flush(ctx context.Context) error {
	revisions, err := im.view.PutAll(ctx, im.domain, im.waiting)
	if err != nil {
		return err
	}
	for i, rev := range revisions {
		im.Records[im.at[i]].Revision = rev
	}
	im.waiting, im.at, im.bytes = im.waiting[:0], im.at[:0], 0
	return nil
}

func (im *kbImport) print() error {
	if im.json {
		return im.printJSON(im)
	}
	for _, s := range im.Skipped {
		fmt.Fprintf(im.stderr, "rlp: left out: %s: %s\n", printable(s.Path), printable(s.Reason))
	}
	if !im.quiet {
		fmt.Fprintf(im.stdout, "%s: %d added, %d changed, %d unchanged, %d left out\n", im.domain, im.Added, im.Changed,
			im.Unchanged, len(im.Skipped))
	}
	return nil
}
