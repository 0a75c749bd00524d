package ask

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"runloop.dev/rlp/kb"
	"runloop.dev/rlp/launcher/run"
)

// WholeID is the length of a run's id.
const WholeID = 36

// Runs is a log that runs are looked for in: see [kb.Store].
type Runs interface {
	Runs(ctx context.Context, q kb.RunQuery) iter.Seq2[kb.RunSummary, error]
}

// WholeRun finds the run that the beginning or the end of an id means, as any page,
// list or message prints it, among those of the log and others. An id that is whole
// is not looked for.
func WholeRun(ctx context.Context, log Runs, id string, others ...string) (string, error) {
	if id == "" || len(id) >= WholeID {
		return id, nil
	}
	began, err := runIDs(ctx, log, id, slices.Clone(others)) // ids are in order: these are found at once
	if err != nil || slices.ContainsFunc(began, func(s string) bool { return strings.HasPrefix(s, id) }) {
		return oneRun(id, began, err)
	}
	all, err := runIDs(ctx, log, "", slices.Clone(others))
	return oneRun(id, all, err)
}

func oneRun(id string, ids []string, err error) (string, error) {
	if err != nil { // a damaged log says so, and completes nothing
		return "", err
	}
	return OneID("run", id, "rlp runs", ids)
}

// runIDs adds the ids of the runs of the log that begin with a text.
func runIDs(ctx context.Context, log Runs, begin string, ids []string) ([]string, error) {
	behind := begin + strings.Repeat("~", WholeID-len(begin)) // sorts behind all that begin so
	for r, err := range log.Runs(ctx, kb.RunQuery{Before: behind, Names: true}) {
		if err != nil {
			return nil, err
		}
		if !strings.HasPrefix(r.RunID, begin) {
			break
		}
		ids = append(ids, r.RunID)
	}
	return ids, nil
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
