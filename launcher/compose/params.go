package compose

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"runloop.dev/rlp/caps"
	"runloop.dev/rlp/caps/policy"
	"runloop.dev/rlp/internal/effect/jail"
)

// A filling is a placeholder of the base with what was given for it, and where.
type filling struct {
	policy.Placeholder
	value string
	given caps.Pos
}

// checkKinds refuses a value that is not there, or not what the manifest asks
// for: the operator named it a moment ago, so it is a slip.
func (c *Composition) checkKinds(params []policy.Param, given policy.Given) error {
	for _, p := range params {
		path, pos := c.params[p.Name], given.Values[p.Name].Pos
		if err := Own(c.Home, path); err != nil {
			return err
		}
		if c.Origin.Sent {
			continue // it is met with as any path of the bundle's
		}
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return InputErr(placef(pos, "the %s for {%s} does not exist: %s; make it first, or %s", p.Kind, p.Name, path,
				otherValue(p, pos)))
		case err != nil:
			return InputErr(placef(pos, "looking at the value of {%s}: %w", p.Name, err))
		case (p.Kind == "dir") != info.IsDir():
			return InputErr(placef(pos, "{%s} takes a %s, and %s is none; %s", p.Name, p.Kind, path, otherValue(p, pos)))
		}
	}
	return nil
}

// A PlaceError is what is wrong at a place of a file, or in a flag.
type PlaceError struct {
	Pos caps.Pos
	Err error
}

func (e *PlaceError) Error() string { return e.Pos.String() + ": " + e.Err.Error() }
func (e *PlaceError) Unwrap() error { return e.Err }

func placef(pos caps.Pos, format string, args ...any) error {
	return &PlaceError{pos, fmt.Errorf(format, args...)}
}

// otherValue is how another value is given than the one at pos.
func otherValue(p policy.Param, pos caps.Pos) string {
	if pos.Line == 0 {
		return fmt.Sprintf("give another with --param %s=PATH", p.Name)
	}
	return fmt.Sprintf("write another there, as %s = \"PATH\" under [params]", p.Name)
}

// placeValues has the paths that links lead elsewhere name whoever wrote them: of
// a value with a link in it the place where that was given, not the placeholder's
// in the bundle, which is its author's and says nothing of links.
func (c *Composition) placeValues() {
	for i := range c.Paths.Redirects {
		r := &c.Paths.Redirects[i]
		j := slices.IndexFunc(c.filled, func(f filling) bool { return f.Pos == r.Pos })
		if j < 0 || r.Link == "" {
			continue
		}
		if to, err := jail.Canonical(c.filled[j].value); err == nil && to.Redirect() != "" {
			r.Pos, r.Instead = c.filled[j].given, to.Path
		}
	}
}

// Params are what the operator's files say that the placeholders of an agent stand for.
func (a *Reader) Params(agent string) (map[string]string, error) {
	c, given := &Composition{}, policy.Given{Values: map[string]policy.Value{}, Home: a.userHome()}
	if err := a.Settle(c); err != nil {
		return nil, err
	}
	var err error
	if given.Dir, err = a.WorkingDir(); err != nil {
		return nil, err
	}
	params := map[string]string{}
	for _, name := range []string{"_default", agent} {
		if _, err := a.OverrideLayer(c, c.Home.Override(name), true, &given); err != nil {
			return nil, err
		}
	}
	for name, v := range given.Values {
		if params[name], err = given.Absolute(v.Path); err != nil {
			return nil, err
		}
	}
	return params, nil
}
