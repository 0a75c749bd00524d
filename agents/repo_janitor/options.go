package main

import (
	"errors"
	"strconv"
	"strings"
)

// options are the agent's arguments.
type options struct {
	staleDays int64 // branches this much older than the newest commit are stale
	large     int64 // files of this many bytes or more are large
	top       int64 // how many entries a list has at most
}

// parseOptions reads "--stale-days N", "--large BYTES" and "--top N"; "--top=N"
// is the same.
func parseOptions(args []string) (options, error) {
	o := options{staleDays: 90, large: 1 << 20, top: 20}
	fields := map[string]*int64{"--stale-days": &o.staleDays, "--large": &o.large, "--top": &o.top}
	for len(args) > 0 {
		name, value, ok := strings.Cut(args[0], "=")
		args = args[1:]
		field := fields[name]
		switch {
		case field == nil:
			return o, errors.New("unknown argument " + strconv.Quote(name))
		case !ok && len(args) == 0:
			return o, errors.New(name + " needs a value")
		case !ok:
			value, args = args[0], args[1:]
		}
		n, err := strconv.ParseUint(value, 10, 40)
		if err != nil {
			return o, errors.New(name + ": " + strconv.Quote(value) + " is not a number such as 20")
		}
		*field = int64(n)
	}
	return o, nil
}
