package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/kb/source"
	"runloop.dev/rlp/launcher/knowledge"
)

func kbImportCommand(a *app) *cobra.Command {
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
			im, err := knowledge.ImportFrom(c.Context(), a.reader(), args[0], domain, o)
			if err != nil {
				return err
			}
			return printImport(a, im)
		},
	}
	c.Flags().StringVar(&domain, "domain", "", "the `DOMAIN` where the documents go")
	c.Flags().StringVar(&o.Prefix, "prefix", "", "begin every key with this `TEXT`")
	c.Flags().BoolVar(&o.Hidden, "hidden", false, "what begins with a dot too")
	return c
}

func printImport(a *app, im *knowledge.Import) error {
	if a.json {
		return a.printJSON(im)
	}
	for _, s := range im.Skipped {
		a.say("left out: " + printable(s.Path) + ": " + printable(s.Reason))
	}
	if !a.quiet {
		fmt.Fprintf(a.stdout, "%s: %d added, %d changed, %d unchanged, %d left out\n", im.Domain, im.Added, im.Changed,
			im.Unchanged, len(im.Skipped))
	}
	return nil
}
