// Command demo runs every sample agent for real, with a mail server and a model
// server on loopback, and shows what each was allowed and denied.
//
//	demo RLP DIR
//
// RLP is the program, DIR a folder of the demo's own: it is emptied first.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

// mailAddress is the one that mailer's policy names.
const mailAddress = "127.0.0.1:8025"

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: demo RLP DIR")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// A demo is one run of all of it.
type demo struct {
	ctx      context.Context
	program  string // absolute
	dir      string // absolute
	out      io.Writer
	said     bytes.Buffer // all that rlp printed
	mail     mailServer
	model    modelServer
	modelURL string
}

func run(ctx context.Context, program, dir string) (err error) {
	d := &demo{ctx: ctx, out: os.Stdout, mail: mailServer{token: token()}, model: modelServer{key: token()}}
	if d.program, err = filepath.Abs(program); err != nil {
		return err
	}
	if d.dir, err = filepath.Abs(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(d.dir); err != nil {
		return err
	}
	stopMail, _, err := serve(mailAddress, &d.mail)
	if err != nil {
		return fmt.Errorf("the mail server needs %s: %w", mailAddress, err)
	}
	defer stopMail()
	stopModel, address, err := serve("127.0.0.1:0", &d.model)
	if err != nil {
		return err
	}
	defer stopModel()
	d.modelURL = "http://" + address + "/v1"
	for _, step := range []func() error{
		d.prepare, d.notes, d.talk, d.write, d.review, d.send, d.tidy, d.narrow, d.log,
		d.search,
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// token is a secret of this demo alone.
func token() string { return "demo-" + rand.Text() }

// serve serves h on address until it is stopped.
func serve(address string, h http.Handler) (stop func(), at string, err error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, "", err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.Serve(l) }() // ends when it is closed
	return func() { _ = s.Close() }, l.Addr().String(), nil
}

// say prints what is shown next.
func (d *demo) say(format string, args ...any) {
	fmt.Fprintf(d.out, "\n# "+format+"\n", args...)
}

// rlp shows and runs one command of rlp; it must end with 0.
func (d *demo) rlp(stdin string, args ...string) error {
	code, err := d.any(stdin, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("rlp %s: ended with %d", strings.Join(args, " "), code)
	}
	return err
}

// any is rlp for a command that may end with any code.
func (d *demo) any(stdin string, args ...string) (code int, err error) {
	shown := append([]string(nil), args...)
	for i, a := range shown {
		shown[i] = strings.ReplaceAll(a, d.dir, "DIR")
		if strings.ContainsAny(a, " \"{") {
			shown[i] = "'" + shown[i] + "'"
		}
	}
	fmt.Fprintf(d.out, "$ rlp %s\n", strings.Join(shown, " "))
	c := exec.CommandContext(d.ctx, d.program, args...)
	c.Env = append(os.Environ(), "RUNLOOP_HOME="+filepath.Join(d.dir, "home"))
	c.Stdin = strings.NewReader(stdin)
	var text, problems bytes.Buffer
	c.Stdout, c.Stderr = &text, &problems
	err = c.Run()
	d.said.Write(text.Bytes())
	d.said.Write(problems.Bytes())
	fmt.Fprint(d.out, problems.String(), text.String())
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return ended.ExitCode(), nil
	}
	return 0, err
}

// config is the operator's config.toml.
const config = `[security.caps]
trusted_hosts = ["http://localhost:8025"]   # the mail server: its answers end no run's use of secrets

[security.secrets]
provider = "age"

[exec]
lane = "native"            # git and grep run as programs of yours; best effort

[model]
default = "openai:letters"

[[model.providers]]
id = "openai"              # anything that speaks this protocol
kind = "openai"
base_url = %q
secret_id = "runloop/demo/model_key"
models = ["letters"]

[model.prices."openai:letters"]
in = 0.15
out = 0.60
`

func (d *demo) prepare() error {
	for _, name := range []string{"home", "out", "report"} {
		if err := os.MkdirAll(filepath.Join(d.dir, name), 0o700); err != nil {
			return err
		}
	}
	text := fmt.Sprintf(config, d.modelURL)
	if err := os.WriteFile(filepath.Join(d.dir, "home", "config.toml"), []byte(text), 0o600); err != nil {
		return err
	}
	d.say("the operator's config.toml")
	fmt.Fprint(d.out, text)
	d.say("two keys go into the vault; no agent will ever see one")
	for _, step := range [][]string{
		{"", "secrets", "init"},
		{d.mail.token, "secrets", "put", "runloop/mail/api_key"},
		{d.model.key, "secrets", "put", "runloop/demo/model_key"},
		{"", "secrets", "list"},
	} {
		if err := d.rlp(step[0], step[1:]...); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) notes() error {
	d.say("notes_digest reads a folder of notes, writes a digest and puts the contacts that it finds into the knowledge " +
		"base")
	if err := d.rlp("", "launch", "agents/notes_digest", "--param", "notes=testdata/notes", "--param", "out="+d.dir+
		"/out"); err != nil {
		return err
	}
	d.say("tree_audit looks for what should not lie there")
	return d.rlp("", "launch", "agents/tree_audit", "--param", "tree=testdata/notes")
}

func (d *demo) talk() error {
	d.say("chat_notes answers questions, one a line of its stdin: who sells the boat? when is the harbour meeting?")
	return d.rlp("who sells the boat?\nwhen is the harbour meeting?\n", "launch", "agents/chat_notes", "--param",
		"notes=testdata/notes", "--turns")
}

func (d *demo) write() error {
	d.say("mail_writer has a model write a mail to each contact; it sees masks where addresses and names are")
	if err := d.rlp("", "launch", "agents/mail_writer", "--input",
		`{"about":"The harbour lights are back.","model":"openai:letters"}`); err != nil {
		return err
	}
	return d.rlp("", "kb", "list", "drafts")
}

func (d *demo) review() error {
	d.say("editor has another agent, critic, review them; critic gets its input and nothing else")
	if err := d.rlp("", "agent", "install", "agents/critic"); err != nil {
		return err
	}
	return d.rlp("", "launch", "agents/editor")
}

func (d *demo) send() error {
	d.say("mailer sends them; the host puts the key into the request, for this server alone")
	if err := d.rlp("", "launch", "agents/mailer", "--input",
		`{"api":"http://localhost:8025/v1/messages","from":"me@example.com"}`); err != nil {
		return err
	}
	sent := d.mail.outbox()
	d.say("what the mail server got (%d mails)", len(sent))
	for _, m := range sent {
		fmt.Fprintf(d.out, "  to %-28s %s\n", m.To, m.Subject)
	}
	if len(sent) == 0 {
		return errors.New("no mail arrived")
	}
	return nil
}

func (d *demo) tidy() error {
	repo := filepath.Join(d.dir, "repo")
	if err := checkout(d.ctx, repo); err != nil {
		return err
	}
	d.say("repo_janitor looks through a checkout with git and grep, started without a shell")
	if err := d.rlp("", "launch", "agents/repo_janitor", "--param", "repo="+repo, "--param", "report="+d.dir+
		"/report"); err != nil {
		return err
	}
	return nil
}

// checkout makes a repository with something to tidy.
func checkout(ctx context.Context, repo string) error {
	script := `set -e
git init -q -b main "$1" && cd "$1"
git config user.email demo@example.com && git config user.name Demo
printf '// TODO: write this\n' > a.go && git add . && git commit -q -m first
git branch old && printf 'changed\n' >> a.go`
	out, err := exec.CommandContext(ctx, "/bin/sh", "-c", script, "sh", repo).CombinedOutput()
	if err != nil {
		return fmt.Errorf("making a checkout with git: %w: %s", err, out)
	}
	return nil
}

func (d *demo) narrow() error {
	override := filepath.Join(d.dir, "home", "caps", "overrides", "mail_writer.toml")
	if err := os.MkdirAll(filepath.Dir(override), 0o700); err != nil {
		return err
	}
	text := "schema = \"0.2\"\n[capabilities]\nmodel = [\"local:echo\"]\n"
	if err := os.WriteFile(override, []byte(text), 0o600); err != nil {
		return err
	}
	d.say("the operator leaves mail_writer no model but the local one, in caps/overrides/mail_writer.toml")
	fmt.Fprint(d.out, text)
	if err := d.rlp("", "caps", "diff", "agents/mail_writer"); err != nil {
		return err
	}
	if err := d.rlp("", "caps", "explain", "agents/mail_writer", "model:use:openai:letters"); err != nil {
		return err
	}
	code, err := d.any("", "launch", "agents/mail_writer", "--input",
		`{"about":"And off again.","model":"openai:letters"}`)
	fmt.Fprintf(d.out, "  ended with %d\n", code)
	return err
}

func (d *demo) log() error {
	d.say("everything that was decided is in the audit log; here is what was denied, and each use of a secret")
	if err := d.rlp("", "audit", "list", "--decision", "deny"); err != nil {
		return err
	}
	return d.rlp("", "audit", "list", "--family", "secrets", "--limit", "4")
}

// search looks for the two keys wherever rlp may have left them.
func (d *demo) search() error {
	d.say("the keys are looked for, as they are, in hex and in base64, in all that was printed or kept")
	found := 0
	look := func(name string, data []byte) {
		for _, key := range []string{d.mail.token, d.model.key} {
			for _, form := range []string{
				key, hex.EncodeToString([]byte(key)),
				base64.StdEncoding.EncodeToString([]byte(key))[:len(key)],
			} {
				if bytes.Contains(data, []byte(form)) {
					found++
					fmt.Fprintf(d.out, "  FOUND in %s\n", name)
				}
			}
		}
	}
	look("the output", d.said.Bytes())
	files := 0
	err := filepath.WalkDir(d.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		files++
		look(path, data)
		return err
	})
	if err == nil && found > 0 {
		err = fmt.Errorf("a key was found %d times", found)
	}
	if err == nil {
		fmt.Fprintf(d.out, "  not found (%d files)\n", files)
	}
	return err
}
