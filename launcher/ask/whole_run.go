package ask

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/run"
)

// wholeID is the length of a run's id.
const wholeID = 36

// WholeRun finds the run that the beginning or the end of an id means, as any page,
// list or message prints it.
func WholeRun(ctx context.Context, s *kb.Store, id string) (string, error) {
	if id == "" || len(id) >= wholeID {
		return id, nil
	}
	var ids []string
	for r, err := range s.Glances(ctx, kb.Filter{}) { // a damaged log says so, and completes nothing
		if err != nil {
			return "", err
		}
		if len(ids) == 0 || string(r.Run) != ids[len(ids)-1] {
			ids = append(ids, string(r.Run))
		}
	}
	return OneID("run", id, "rlp runs", ids)
}

// OneID is the one of ids, each a thing of a kind, that given means: the whole of
// it, its beginning or its end. list is the command that prints them.
func OneID(kind, given, list string, ids []string) (string, error) {
	if slices.Contains(ids, given) {
		return given, nil
	}
	part := strings.TrimPrefix(given, "…") // as pages print an end
	for _, is := range []func(s, part string) bool{strings.HasPrefix, strings.HasSuffix} {
		var found []string
		for _, id := range ids {
			if part != "" && is(id, part) && !slices.Contains(found, id) {
				found = append(found, id)
			}
		}
		slices.Sort(found)
		switch {
		case len(found) == 1:
			return found[0], nil
		case len(found) > 1:
			return "", &Error{Status: run.StatusUsage, Err: fmt.Errorf("%s is the id of more than one %s: %s", given, kind,
				candidates(found))}
		}
	}
	return "", &Error{Status: run.StatusInput, Err: fmt.Errorf("there is no %s %s; %s shows all", kind, given, list)}
}

// candidates are some of what a part of an id may mean.
func candidates(ids []string) string {
	const most = 5
	if len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
}
