package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/internal/base/tomlfile"
	"runloop.dev/rlp/internal/serve/access"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

func tokenCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Let others ask rlp serve: what they may, for how long",
		Long: `Token makes what others show to rlp serve: a secret that they send as
Authorization: Bearer TOKEN, or a client certificate of theirs. Each is of one tenant,
may run, read or operate, ends at some time, and can narrow all that is asked by it
with profiles and a grant. The user who runs rlp serve needs none on the machine.`,
		Args: cobra.NoArgs, RunE: showHelp,
	}
	c.AddCommand(tokenNewCommand(a), tokenListCommand(a), tokenRevokeCommand(a))
	return c
}

// tokenFlags are what a token is made of.
type tokenFlags struct {
	name, grant, expires, cert string
	profiles, may              []string
}

func tokenNewCommand(a *app) *cobra.Command {
	var f tokenFlags
	c := &cobra.Command{
		Use:   "new --name NAME",
		Short: "Make a token, and print it once",
		Long: `New prints a token on stdout, once: what is kept is a digest of it. With --cert no
token is printed; the holder of that client certificate needs none.

--grant and --profile narrow all that is asked with the token, beside everything that
narrows anyway. The grant is copied: a later edit of its file changes nothing.`,
		Example: `  rlp token new --name ci --tenant acme --profile sandbox_compute_and_store --expires 30d
  rlp token new --name watcher --may read --expires 2027-01-01
  rlp token new --name runner-7 --cert runner-7.example`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, flag := range []string{"grant", "cert"} { // what narrows is not left out by a variable that is not set
				if c.Flags().Changed(flag) && c.Flag(flag).Value.String() == "" {
					return usagef("--%s is empty; give a value, or leave it out", flag)
				}
			}
			return tokenNew(a, f)
		},
	}
	c.Flags().StringVar(&f.name, "name", "", "the `NAME` that logs call its holder by")
	c.Flags().StringVar(&f.grant, "grant", "", "the `FILE` of a grant or override that narrows what is asked with it")
	c.Flags().StringArrayVar(&f.profiles, "profile", nil,
		"the `NAME` of a profile that narrows what is asked with it; may be given again")
	c.Flags().StringSliceVar(&f.may, "may", []string{"run", "read"}, "the `RIGHTS` that it has, of run, read, operate")
	c.Flags().StringVar(&f.expires, "expires", "90d", "it ends `WHEN`: 12h, 30d, a date, or never")
	c.Flags().StringVar(&f.cert, "cert", "",
		"the `CN|SHA256` of the client certificate that it stands for: its common name, or its SHA-256 in hex")
	return c
}

// tokenStore is the records of tokens, of every tenant.
func tokenStore(a *app) (*access.Store, home.Home, error) {
	h, err := a.home()
	return access.OpenStore(h.Tokens(), time.Now), h, err
}

func tokenNew(a *app, f tokenFlags) error {
	if f.name == "" {
		return usagef("rlp token new needs --name, by which logs call its holder, such as --name ci")
	}
	t := access.Token{Name: f.name, Profiles: f.profiles}
	var err error
	if t.May, err = access.ParseRights(f.may); err != nil {
		return usagef("--may: %w", err)
	}
	if t.Expires, err = parseExpiry(f.expires, time.Now()); err != nil {
		return usagef("--expires %s: %w", f.expires, err)
	}
	if f.cert != "" {
		bindCert(&t, f.cert)
	}
	store, h, err := tokenStore(a)
	if err != nil {
		return err
	}
	t.Tenant = h.Tenant()
	if t.Grant, err = tokenGrant(a, f); err != nil {
		return err
	}
	made, text, err := store.New(t)
	if err != nil {
		return inputErr(err)
	}
	if a.json {
		row := tokenRowOf(access.Listed{ID: made.ID, Token: made}, time.Now())
		row.Token = text
		return a.printJSON(row)
	}
	if text != "" {
		fmt.Fprintln(a.stdout, text)
	}
	if !a.quiet {
		once := ""
		if text != "" {
			once = "\n     it is printed once; send it as Authorization: Bearer TOKEN"
		}
		a.say(fmt.Sprintf("made %s for %s, tenant %s, may %s, %s%s", made.ID, made.Name, made.Tenant,
			strings.Join(access.RightsOf(made.May), ", "), untilText(made.Expires), once))
	}
	return nil
}

// bindCert binds t to a certificate: 64 hex digits, with colons or without, are
// its hash, as openssl prints it, and everything else its name.
func bindCert(t *access.Token, text string) {
	hash := strings.ToLower(strings.ReplaceAll(text, ":", ""))
	if len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == "" {
		t.CertHash = hash
		return
	}
	t.CertName = text
}

// tokenGrant reads what is to narrow a token, as the service will: one that it
// could not read would be a token for nothing.
func tokenGrant(a *app, f tokenFlags) (string, error) {
	c := &compose.Composition{}
	if err := a.reader().Settle(c, f.grant); err != nil {
		return "", err
	}
	for _, name := range f.profiles {
		if !policy.IsProfileName(name) {
			return "", usagef("--profile %s: the name of a profile is lower-case letters, digits, - and _", name)
		}
		if _, err := a.reader().Profile(c, name); err != nil {
			return "", err
		}
	}
	if f.grant == "" {
		return "", nil
	}
	data, err := tomlfile.ReadFile(f.grant, 0)
	if err != nil {
		return "", inputErr(fmt.Errorf("--grant: %w", err))
	}
	o, findings := policy.ParseLayer("token:"+f.name, f.grant, data, a.reader().Options(c.Home, c.Config))
	if err := policy.AsError(findings); err != nil {
		return "", inputErr(fmt.Errorf("--grant: %w", err))
	}
	if len(o.Params) > 0 {
		return "", inputErr(fmt.Errorf("--grant %s: [params] in the grant of a token fill in nothing; take them out",
			f.grant))
	}
	return string(data), nil
}

// maxExpiry is how far ahead a token ends at most, if it does.
const maxExpiry = 10 * 365 * 24 * time.Hour

// parseExpiry reads when a token ends; the zero time is never.
func parseExpiry(s string, now time.Time) (time.Time, error) {
	const form = "write 12h, 30d, a date such as 2027-01-31, a time such as 2027-01-31T12:00:00Z, or never"
	if s == "never" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		at, err = time.Parse(time.DateOnly, s)
	}
	if err != nil {
		d, err := time.ParseDuration(s)
		if days, ok := strings.CutSuffix(s, "d"); ok {
			var n int
			if n, err = strconv.Atoi(days); err == nil && (n < 0 || n > 3650) {
				err = errors.New("too many days")
			}
			d = time.Duration(n) * 24 * time.Hour
		}
		if err != nil {
			return time.Time{}, errors.New(form)
		}
		at = now.Add(d)
	}
	if at = at.UTC().Truncate(time.Second); !at.After(now) {
		return time.Time{}, errors.New("that is over already")
	}
	if at.Sub(now) > maxExpiry {
		return time.Time{}, errors.New("that is more than ten years; write never if that is meant")
	}
	return at, nil
}

func untilText(at time.Time) string {
	if at.IsZero() {
		return "never ends"
	}
	return "ends " + at.UTC().Format(time.RFC3339)
}

func tokenRevokeCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke ID...",
		Short: "End tokens, and what is open by them",
		Long: `Revoke ends tokens by their ids, which rlp token list prints. Running services notice
within a second; streams and runs that somebody waits for end with the token. A token
that was found somewhere can be given whole.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("rlp token revoke needs the ID of a token; rlp token list prints them")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return tokenRevoke(a, args) },
	}
}

func tokenRevoke(a *app, args []string) error {
	var ids []string
	for i, arg := range args {
		id, err := access.ParseID(arg)
		if err != nil {
			return usagef("argument %d: %w", i+1, err) // it may be most of a token
		}
		ids = append(ids, id)
	}
	store, _, err := tokenStore(a)
	if err != nil {
		return err
	}
	for _, id := range ids {
		t, err := store.Revoke(id)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return &statusError{
				Status: launcher.StatusFinding,
				Err:    fmt.Errorf("there is no token %s; rlp token list prints those that there are", id),
			}
		case err != nil:
			var mode *home.ModeError
			if errors.As(err, &mode) {
				err = fmt.Errorf("%w; it lets nobody in as it is, and can be removed", err)
			}
			return inputErr(err)
		case a.json:
			if err := a.printJSON(map[string]any{
				"id": id, "name": t.Name, "tenant": t.Tenant,
				"revoked": t.Revoked.UTC().Format(time.RFC3339),
			}); err != nil {
				return err
			}
		case !a.quiet:
			fmt.Fprintf(a.stdout, "revoked %s (%s)\n", id, t.Name)
		}
	}
	return nil
}
