package main

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/serve/access"
)

func tokenListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List tokens of every tenant: whose they are, what they may, when they end", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return tokenList(a) },
	}
}

// A tokenRow is a token as JSON; Token itself is there when it was made alone.
type tokenRow struct {
	ID         string   `json:"id"`
	Token      string   `json:"token,omitempty"`
	Name       string   `json:"name,omitempty"`
	Tenant     string   `json:"tenant,omitempty"`
	May        []string `json:"may,omitempty"`
	State      string   `json:"state"` // good, expired, revoked, or unreadable
	Profiles   []string `json:"profiles,omitempty"`
	Grant      string   `json:"grant,omitempty"`
	CertName   string   `json:"cert_name,omitempty"`
	CertSHA256 string   `json:"cert_sha256,omitempty"`
	Created    string   `json:"created,omitempty"`
	Expires    string   `json:"expires,omitempty"`
	Revoked    string   `json:"revoked,omitempty"`
	LastUsed   string   `json:"last_used,omitempty"`
	Problem    string   `json:"problem,omitempty"`
}

func tokenRowOf(l access.Listed, now time.Time) tokenRow {
	at := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.UTC().Format(time.RFC3339)
	}
	r := tokenRow{ID: l.ID, LastUsed: at(l.Used), State: "unreadable"}
	if l.Err != nil {
		r.Problem = l.Err.Error()
	}
	if t := l.Token; t != nil {
		r.Name, r.Tenant, r.May, r.State = t.Name, t.Tenant, access.RightsOf(t.May), t.State(now)
		r.Profiles, r.Grant, r.CertName, r.CertSHA256 = t.Profiles, t.Grant, t.CertName, t.CertHash
		r.Created, r.Expires, r.Revoked = at(t.Created), at(t.Expires), at(t.Revoked)
	}
	return r
}

// proof is what its holder shows.
func (r tokenRow) proof() string {
	switch {
	case r.State == "unreadable":
		return "-"
	case r.CertName != "":
		return "cert " + printable(r.CertName)
	case r.CertSHA256 != "":
		return "cert " + r.CertSHA256[:min(12, len(r.CertSHA256))]
	}
	return "token"
}

func tokenList(a *app) error {
	store, _, err := tokenStore(a)
	if err != nil {
		return err
	}
	list, err := store.List()
	if err != nil {
		return inputErr(fmt.Errorf("listing the tokens: %w", err))
	}
	rows := make([]tokenRow, 0, len(list))
	for _, l := range list {
		rows = append(rows, tokenRowOf(l, time.Now()))
	}
	if a.json {
		return a.printJSON(map[string]any{"tokens": rows})
	}
	if none(a, len(rows), "there are no tokens; rlp token new makes one") {
		return nil
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tPROOF\tTENANT\tMAY\tSTATE\tENDS\tLAST USED\tNARROWED BY")
	for _, r := range rows {
		by := r.Profiles
		if r.Grant != "" {
			by = append(by, "grant")
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, cmp.Or(r.Name, "-"), r.proof(), cmp.Or(r.Tenant, "-"),
			cmp.Or(strings.Join(r.May, ","), "-"),
			r.State, cmp.Or(r.Expires, "never"), cmp.Or(r.LastUsed, "never"), cmp.Or(strings.Join(by, ","), "-"))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	for _, r := range rows {
		if r.Problem != "" {
			a.say(r.ID + " lets nobody in: " + printable(r.Problem))
		}
	}
	return nil
}
