package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"runloop.dev/rlp/internal/base/home"
	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/kb/source"
	"runloop.dev/rlp/launcher"
	"runloop.dev/rlp/launcher/compose"
)

func (a *app) kbCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "kb", Short: "Read, change, search and keep the knowledge base", Args: cobra.NoArgs, RunE: showHelp,
		Long: `What agents know: values under keys, in domains. Every command works beside
running agents.

Personal data is shown masked unless you say --raw. A backup holds it as it is.`,
	}
	c.AddCommand(
		a.kbDomainsCommand(), a.kbGetCommand(), a.kbPutCommand(), a.kbDeleteCommand(), a.kbListCommand(), a.kbSearchCommand(),
		a.kbWhyCommand(), a.kbVerifyCommand(), a.kbBackupCommand(), a.kbRestoreCommand(), a.kbImportCommand(),
	)
	return c
}

// A kbSession is the store as one command uses it.
type kbSession struct {
	*app
	home  home.Home
	store *kb.Store
	view  *kb.View
	masks *compose.Masks
}

// withKB opens the store for one command of the operator's.
func (a *app) withKB(ctx context.Context, o kb.Origin, do func(s *kbSession) error) (err error) {
	h, cfg, err := a.settings()
	if err != nil {
		return err
	}
	opened, err := kb.Open(ctx, compose.StoreOptions(h, cfg))
	if err != nil {
		return &statusError{Status: launcher.StatusUnavailable, Err: err}
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	return kbStatus(do(&kbSession{a, h, opened, opened.View(o), compose.NewMasks(h)}))
}

// kbStatus gives what the store answers the exit status that it has.
func kbStatus(err error) error {
	var se *statusError
	switch {
	case err == nil || errors.As(err, &se):
		return err
	case errors.Is(err, kb.ErrUnavailable), errors.Is(err, kb.ErrVersion), errors.Is(err, kb.ErrSchema):
		return &statusError{Status: launcher.StatusUnavailable, Err: err}
	case errors.Is(err, kb.ErrBackup), errors.Is(err, source.ErrInput):
		return inputErr(err)
	case errors.Is(err, kb.ErrDomain), errors.Is(err, kb.ErrInvalid):
		return &statusError{Status: launcher.StatusUsage, Err: err}
	}
	return err
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

func absentIn(err error, domain, key string) error {
	if errors.Is(err, fs.ErrNotExist) {
		return &missingError{domain, key}
	}
	return err
}

// A missingError says that a key holds nothing.
type missingError struct{ domain, key string }

func (e *missingError) Error() string {
	return "nothing is stored at " + e.domain + "/" + e.key + "; rlp kb list " + e.domain + " shows what is"
}

// readValue is the value of a put: the text itself, @FILE, or - for stdin.
func (a *app) readValue(arg string) ([]byte, error) {
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
