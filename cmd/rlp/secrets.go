package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/config"
	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
	"runloop.dev/rlp/secrets"
)

func secretsCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "secrets",
		Short: "Keep values that agents may use and never see",
		Long: `Secrets keeps values by id, runloop/<scope>/<name>. An agent that is granted one
gets a handle; rlp puts the value in where a granted header, form field or program's
environment names the handle, and takes it out of everything that comes back.

Where they are kept is security.secrets.provider in config.toml: age (a vault in the
home, the default), keyring, env, or exec.`,
		Args: cobra.NoArgs, RunE: showHelp,
	}
	c.AddCommand(secretsInitCommand(a), secretsPutCommand(a), secretsListCommand(a), secretsDeleteCommand(a))
	return c
}

// provider opens what keeps the secrets of this invocation's tenant.
func secretProvider(a *app) (secrets.Provider, home.Home, config.Config, error) {
	h, err := a.home()
	if err != nil {
		return nil, h, config.Config{}, err
	}
	cfg, err := config.Load(h.Config(), a.env)
	if err != nil {
		return nil, h, cfg, inputErr(err)
	}
	p, err := a.runner().SecretProvider(h, cfg)
	return p, h, cfg, err
}

func secretsInitCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "init", Short: "Make the age vault of the tenant", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return secretsInit(a) },
	}
}

func secretsInit(a *app) error {
	_, h, cfg, err := secretProvider(a)
	if err != nil {
		return err
	}
	if name := cfg.Security.SecretsProvider; name != "age" {
		return usagef("security.secrets.provider is %q: only the age vault has to be made", name)
	}
	dir := h.Secrets()
	created, err := secrets.Init(dir)
	if err != nil {
		return inputErr(err)
	}
	if a.json {
		return a.printJSON(map[string]any{"provider": "age", "path": dir, "created": created})
	}
	switch {
	case a.quiet:
	case created:
		fmt.Fprintf(a.stdout, "made the vault in %s; without the file identity in it no value can be read again\n", dir)
	default:
		fmt.Fprintf(a.stdout, "the vault in %s is there already\n", dir)
	}
	return nil
}

func secretsPutCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "put ID",
		Short: "Store a value, read from stdin or typed without echo",
		Long: `Put stores a value in the place of an earlier one. It is read from stdin, less one
newline at its end, or typed at the terminal; never from the command line, which other
users of the machine and the shell's history can see.`,
		Example: "  rlp secrets put runloop/mail/smtp_api_key < key.txt",
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("rlp secrets put needs the ID of the secret, such as runloop/mail/smtp_api_key")
			case len(args) > 1:
				return usagef("rlp secrets put takes an ID and no value: what stands on a command line is seen by others and " +
					"kept in histories; " +
					"give the value on stdin, and change it if it was a real one")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error { return secretsPut(c.Context(), a, args[0]) },
	}
}

func secretsPut(ctx context.Context, a *app, text string) error {
	id, err := secrets.ParseID(text)
	if err != nil {
		return usagef("%w", err)
	}
	p, _, cfg, err := secretProvider(a)
	if err != nil {
		return err
	}
	value, err := readSecret(ctx, a, id)
	if ctx.Err() != nil {
		return &statusError{Status: launcher.StatusCancelled, Err: fmt.Errorf("reading the value: %w", ctx.Err())}
	}
	if err != nil {
		return inputErr(fmt.Errorf("reading the value: %w", err))
	}
	defer clear(value)
	if err := p.Put(ctx, id, value); err != nil {
		return compose.SecretsErr(err)
	}
	return answer(a, map[string]any{"id": id.String(), "provider": cfg.Security.SecretsProvider, "stored": true},
		"stored %s", id)
}

// readSecret reads a value: typed without echo at a terminal, else all of stdin.
func readSecret(ctx context.Context, a *app, id secrets.ID) ([]byte, error) {
	var value []byte
	var err error
	if f, ok := a.stdin.(*os.File); ok && isTerminal(f) {
		fmt.Fprintf(a.stderr, "value of %s (not shown): ", id)
		value, err = readHidden(ctx, f)
		fmt.Fprintln(a.stderr)
	} else {
		value = make([]byte, 0, secrets.MaxValue+512) // never moved: one copy to clear
		b := bytes.NewBuffer(value)
		_, err = b.ReadFrom(io.LimitReader(a.stdin, secrets.MaxValue+3))
		value = b.Bytes()
	}
	if err != nil {
		return nil, err
	}
	value, _ = bytes.CutSuffix(value, []byte("\n"))
	value, _ = bytes.CutSuffix(value, []byte("\r"))
	if err := secrets.CheckValue(value); err != nil {
		clear(value)
		return nil, err
	}
	return value, nil
}

func secretsListCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the ids of secrets, never their values", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return secretsList(c.Context(), a) },
	}
}

func secretsList(ctx context.Context, a *app) error {
	p, _, cfg, err := secretProvider(a)
	if err != nil {
		return err
	}
	ids, err := p.List(ctx)
	if err != nil {
		return compose.SecretsErr(err)
	}
	texts := make([]string, 0, len(ids))
	for _, id := range ids {
		texts = append(texts, id.String())
	}
	if a.json {
		return a.printJSON(map[string]any{"provider": cfg.Security.SecretsProvider, "secrets": texts})
	}
	none(a, len(texts), "no secrets yet; rlp secrets put ID stores one")
	for _, text := range texts {
		fmt.Fprintln(a.stdout, text)
	}
	return nil
}

func secretsDeleteCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use: "delete ID", Short: "Delete a secret", Args: exactly("ID"),
		RunE: func(c *cobra.Command, args []string) error { return secretsDelete(c.Context(), a, args[0]) },
	}
}

func secretsDelete(ctx context.Context, a *app, text string) error {
	id, err := secrets.ParseID(text)
	if err != nil {
		return usagef("%w", err)
	}
	p, _, _, err := secretProvider(a)
	if err != nil {
		return err
	}
	if err := p.Delete(ctx, id); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("no secret %s is stored; rlp secrets list shows those that are", id)
			return &statusError{Status: launcher.StatusFinding, Err: err}
		}
		return compose.SecretsErr(err)
	}
	return answer(a, map[string]any{"id": id.String(), "deleted": true},
		"deleted %s", id)
}
