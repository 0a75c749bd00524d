package hostcalls

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/hostcalls/gate"
	"runloop.dev/rlp/internal/base/strictjson"
	"runloop.dev/rlp/internal/effect/environ"
)

// An execReq is one program to start as the gate judges it.
type execReq struct {
	asked   string  // the path as it was given
	program Program // before it is found: asked
	missing error   // why it was not found
	argv    []string
	env     []envVar // by name
	dir     string
	timeout time.Duration
	stdin   string // a view, valid for the call
	text    string // the request as it came: a view as well

	op     *gate.Op    // of the attached tool that asks; nil: exec_run
	within *caps.Layer // the program gets no more of the run's files than this leaves; nil: all
}

type envVar struct{ name, value string }

// decodeExec reads the two arguments of exec_run.
func decodeExec(in []string) (execReq, error) {
	r := execReq{timeout: defaultTimeout, text: in[0], stdin: in[1]}
	if len(in[0]) > MaxExecRequest {
		return r, &Fail{Errno: TooBig, Hint: "the request, without stdin, is at most 1 MiB"}
	}
	if err := readObject(in[0], r.field); err != nil {
		return r, err
	}
	if len(r.argv) == 0 {
		return r, errors.New("argv: missing; its first is the absolute path of a program")
	}
	program := r.argv[0]
	if !path.IsAbs(program) || path.Clean(program) != program || program == "/" {
		return r, errors.New("argv[0]: must be the absolute path of a program, without . and .. and doubled slashes")
	}
	r.asked, r.program = program, Program{File: program, Name: program}
	return r, nil
}

// field reads the value of one key of the request.
func (r *execReq) field(d *strictjson.Reader, key string) (err error) {
	switch key {
	case "argv":
		return r.arguments(d)
	case "env":
		return r.variables(d)
	case "cwd":
		r.dir, err = readWord(d)
		if slices.Contains(strings.Split(r.dir, "/"), "..") {
			return errors.New("lies in the run's working folder, and has no .. in it; give other folders as arguments, such " +
				"as git -C")
		}
	case "timeout_ms":
		r.timeout, err = timeout(d)
	default:
		err = unknownKey("argv, env, cwd and timeout_ms")
	}
	return err
}

func (r *execReq) arguments(d *strictjson.Reader) error {
	if d.Kind() != '[' {
		return errors.New("a list of texts is wanted")
	}
	return d.Items(func(d *strictjson.Reader, i int) error {
		if i == MaxExecArgs {
			return fmt.Errorf("one more than the %d that are taken", MaxExecArgs)
		}
		arg, err := readWord(d)
		r.argv = append(r.argv, arg)
		return err
	})
}

func (r *execReq) variables(d *strictjson.Reader) error {
	err := d.Members(func(d *strictjson.Reader, name string) error {
		if !caps.IsName(caps.Env, name) {
			return errors.New("no name of a variable")
		}
		if environ.Steers(name) {
			return errors.New("decides what code a program runs, and is never taken from a request")
		}
		value, err := readWord(d)
		r.env = append(r.env, envVar{strings.Clone(name), value})
		return err
	})
	slices.SortFunc(r.env, func(a, b envVar) int { return strings.Compare(a.name, b.name) })
	return err
}

// readWord reads a text as a program can be given one.
func readWord(d *strictjson.Reader) (string, error) {
	s, err := d.Text()
	if strings.IndexByte(s, 0) >= 0 {
		err = errors.New("has a NUL in it")
	}
	return s, err
}

// commandLine is what a person is shown of a program: each word is told from the
// next one, and what it is given beside them stands before it.
func (r *execReq) commandLine() string {
	words := make([]string, 0, len(r.env)+len(r.argv))
	for _, v := range r.env {
		words = append(words, v.name+"="+word(v.value))
	}
	for _, w := range r.argv {
		words = append(words, word(w))
	}
	return strings.Join(words, " ")
}

// word is w, in quotes where it could be taken for several or for none.
func word(w string) string {
	if w != "" && !strings.ContainsFunc(w, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune(`"'\=`,
			r)
	}) {
		return w
	}
	return strconv.Quote(w)
}

// given is what of a run's files the program gets.
func (r *execReq) given(holds caps.Set) (caps.Set, error) {
	if r.within == nil {
		return holds, nil
	}
	holds, _, err := holds.Narrow(r.within)
	if err != nil {
		return holds, fmt.Errorf("narrowing by %s: %w", r.within.Name, err)
	}
	return holds, nil
}
