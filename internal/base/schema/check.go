package schema

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"runloop.dev/rlp/internal/base/strictjson"
)

// Check says what is wrong with a document of [Decode], nil if nothing is. The
// error is an [*Error].
func (s *Schema) Check(v any) error {
	c := &check{steps: MaxSteps}
	err := c.value(s.root, "", v, 0)
	if err == nil {
		err = c.left()
	}
	if err == nil {
		return nil
	}
	return err
}

// A check is one document being checked.
type check struct{ steps int }

var errSteps = &Error{Problem: "checking it takes too many steps"}

// step takes n steps, and is false when there are no more: then nothing that
// is checked any more is right.
func (c *check) step(n int) bool {
	c.steps -= 1 + n
	return c.steps >= 0
}

func (c *check) value(n *node, path string, v any, depth int) *Error {
	switch {
	case depth > 10*strictjson.MaxDepth: // a $ref that leads to itself
		c.steps = -1
		return errSteps
	case !c.step(0):
		return errSteps
	case n == nil:
		return nil
	case n.never:
		return &Error{path, "is not allowed here"}
	}
	if n.ref != nil {
		if err := c.value(n.ref, path, v, depth+1); err != nil {
			return err
		}
	}
	if err := c.kind(n, path, v); err != nil {
		return err
	}
	if err := c.combined(n, path, v, depth+1); err != nil {
		return err
	}
	switch v := v.(type) {
	case map[string]any:
		return c.object(n, path, v, depth+1)
	case []any:
		return c.array(n, path, v, depth+1)
	case string:
		return c.text(n, path, v)
	case *num:
		return c.number(n, path, v)
	}
	return nil
}

// kind checks the type of a value, and whether it is one of those listed.
func (c *check) kind(n *node, path string, v any) *Error {
	t := typeOf(v)
	if len(n.types) > 0 && !slices.Contains(n.types, t) && !(t == "integer" && slices.Contains(n.types, "number")) {
		return &Error{path, fmt.Sprintf("is of type %s, not %s", t, strings.Join(n.types, " or "))}
	}
	if !n.has {
		return nil
	}
	for _, one := range n.enum {
		if c.equal(one, v) {
			return nil
		}
	}
	return &Error{path, "is none of the values that are listed"}
}

// equal reports whether two documents are one, numbers by their value.
func (c *check) equal(a, b any) bool {
	if !c.step(0) || typeOf(a) != typeOf(b) {
		return false
	}
	switch a := a.(type) {
	case *num:
		return a.value.Cmp(b.(*num).value) == 0
	case []any:
		return slices.EqualFunc(a, b.([]any), c.equal)
	case map[string]any:
		return maps.EqualFunc(a, b.(map[string]any), c.equal)
	case string:
		return c.step(len(a)/64) && a == b
	}
	return a == b
}

// combined checks what other schemas say of the same value.
func (c *check) combined(n *node, path string, v any, depth int) *Error {
	for _, sub := range n.all {
		if err := c.value(sub, path, v, depth); err != nil {
			return err
		}
	}
	if n.any != nil && c.matching(n.any, path, v, depth, 1) == 0 {
		return c.unless(path, "is none of what it may be")
	}
	if n.one != nil && c.matching(n.one, path, v, depth, 2) != 1 {
		return c.unless(path, "is not exactly one of what it may be")
	}
	if n.not != nil && c.value(n.not, path, v, depth) == nil {
		return &Error{path, "is what it must not be"}
	}
	if n.cond == nil {
		return c.left()
	}
	then := n.other
	if c.value(n.cond, path, v, depth) == nil {
		then = n.then
	}
	if err := c.left(); err != nil {
		return err
	}
	return c.value(then, path, v, depth)
}

// matching counts the schemas that take v, up to most.
func (c *check) matching(list []*node, path string, v any, depth, most int) int {
	count := 0
	for _, sub := range list {
		if c.value(sub, path, v, depth) == nil {
			count++
		}
		if count == most {
			break
		}
	}
	return count
}

// left is an error when no step is left: what was not checked to its end is
// neither right nor wrong.
func (c *check) left() *Error {
	if c.steps < 0 {
		return errSteps
	}
	return nil
}

func (c *check) unless(path, problem string) *Error {
	if err := c.left(); err != nil {
		return err
	}
	return &Error{path, problem}
}

func (c *check) object(n *node, path string, v map[string]any, depth int) *Error {
	for _, name := range n.required {
		if _, ok := v[name]; !ok {
			return &Error{key(path, name), "is missing"}
		}
	}
	if !n.members.has(len(v)) {
		return &Error{path, fmt.Sprintf("has %d members", len(v))}
	}
	if n.properties == nil && n.patterns == nil && n.additional == nil && n.names == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if err := c.member(n, key(path, name), name, v[name], depth); err != nil {
			return err
		}
	}
	return nil
}

func (c *check) member(n *node, path, name string, v any, depth int) *Error {
	if n.names != nil {
		if err := c.value(n.names, path, name, depth); err != nil {
			return &Error{path, "this name " + err.Problem}
		}
	}
	sub, known := n.properties[name]
	if known {
		if err := c.value(sub, path, v, depth); err != nil {
			return err
		}
	}
	for _, p := range n.patterns {
		if !c.step(len(name)) {
			return errSteps
		}
		if !p.re.MatchString(name) {
			continue
		}
		known = true
		if err := c.value(p.node, path, v, depth); err != nil {
			return err
		}
	}
	if known {
		return nil
	}
	return c.value(n.additional, path, v, depth)
}

func (c *check) array(n *node, path string, v []any, depth int) *Error {
	if !n.length.has(len(v)) {
		return &Error{path, fmt.Sprintf("has %d items", len(v))}
	}
	if n.prefix == nil && n.items == nil && !n.unique {
		return nil
	}
	for i, item := range v {
		sub := n.items
		if i < len(n.prefix) {
			sub = n.prefix[i]
		}
		if err := c.value(sub, index(path, i), item, depth); err != nil {
			return err
		}
		if !n.unique {
			continue
		}
		for j := range i {
			if c.equal(v[j], item) {
				return &Error{index(path, i), "is there twice"}
			}
		}
	}
	return c.left()
}

func (c *check) text(n *node, path, v string) *Error {
	if count := utf8.RuneCountInString(v); !n.text.has(count) {
		return &Error{path, fmt.Sprintf("has %d characters", count)}
	}
	if n.pattern == nil {
		return nil
	}
	if !c.step(len(v)) {
		return errSteps
	}
	if !n.pattern.MatchString(v) {
		return &Error{path, "does not match " + n.pattern.String()}
	}
	return nil
}

func (c *check) number(n *node, path string, v *num) *Error {
	r := v.value
	switch {
	case n.min != nil && r.Cmp(n.min) < 0:
		return &Error{path, "is less than " + n.min.RatString()}
	case n.max != nil && r.Cmp(n.max) > 0:
		return &Error{path, "is more than " + n.max.RatString()}
	case n.above != nil && r.Cmp(n.above) <= 0:
		return &Error{path, "is not more than " + n.above.RatString()}
	case n.below != nil && r.Cmp(n.below) >= 0:
		return &Error{path, "is not less than " + n.below.RatString()}
	case n.multiple != nil && !new(big.Rat).Quo(r, n.multiple).IsInt():
		return &Error{path, "is no multiple of " + n.multiple.RatString()}
	}
	return nil
}
