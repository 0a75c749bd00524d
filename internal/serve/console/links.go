package console

import (
	"fmt"
	"net/url"
	"strconv"
	"time"
)

func runLink(id string) string { return "/ui/runs/" + url.PathEscape(id) }

// whyLink is the page that explains a record of a run.
func whyLink(run string, seq uint64) string {
	return runLink(run) + "/why/" + strconv.FormatUint(seq, 10)
}

func launchLink(agent string) string { return "/ui/agents/" + url.PathEscape(agent) + "/launch" }

func policyLink(agent string) string { return "/ui/agents/" + url.PathEscape(agent) + "/policy" }

// idBefore is what sorts behind the ids of all runs that began before t: an id
// begins with the time in milliseconds.
func idBefore(t time.Time) string {
	ms := uint64(t.UnixMilli())
	return fmt.Sprintf("%08x-%04x-0000-0000-000000000000", ms>>16&0xffffffff, ms&0xffff)
}
