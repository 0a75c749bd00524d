package console

import (
	"fmt"
	"html/template"
	"time"
)

// timeWords are the functions of the templates that tell times: how long ago first,
// and then when, in UTC. With a script a page tells the second in the reader's zone.
func timeWords(now func() time.Time) template.FuncMap {
	return template.FuncMap{
		"clock":  clock,
		"iso":    func(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") },
		"ago":    func(t time.Time) string { return ago(now().Sub(t)) },
		"brief":  func(t time.Time) string { return brief(t, now()) },
		"millis": millis,
	}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

// brief is a time without its day where that is today.
func brief(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	switch {
	case t.YearDay() == now.YearDay() && t.Year() == now.Year():
		return t.Format("15:04:05")
	case t.Year() == now.Year():
		return t.Format("Jan 2 15:04")
	}
	return t.Format("2006-01-02 15:04")
}

// ago is a duration until now in one unit, as assets/console.js says it, too.
func ago(d time.Duration) string {
	switch {
	case d < 5*time.Second:
		return "just now"
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	}
	return fmt.Sprintf("%d days ago", d/(24*time.Hour))
}

func millis(v any) string {
	var ms float64
	switch v := v.(type) {
	case int64:
		ms = float64(v)
	case float64:
		ms = v
	}
	switch {
	case ms <= 0:
		return "0 ms"
	case ms < 1:
		return fmt.Sprintf("%.2f ms", ms)
	case ms < 10:
		return fmt.Sprintf("%.1f ms", ms)
	case ms < 1000:
		return fmt.Sprintf("%.0f ms", ms)
	case ms < 60_000:
		return fmt.Sprintf("%.1f s", ms/1000)
	}
	return (time.Duration(ms/1000) * time.Second).String()
}

// since is how long after the beginning of a run something was.
func since(from, at time.Time) int64 { return max(0, at.Sub(from).Milliseconds()) }
