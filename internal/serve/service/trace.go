package service

import "strings"

// ParseTraceParent reads a traceparent, as its standard writes it: the trace of
// whoever asks, and the span that does. What is none is "" and "", which begins a
// new trace and is nobody's error.
func ParseTraceParent(text string) (trace, span string) {
	const version, most = "00", 512 // what a later version appends is read over
	if len(text) > most {
		return "", ""
	}
	parts := strings.Split(text, "-")
	if len(parts) < 4 || len(parts) > 4 && parts[0] == version || parts[0] == "ff" || !isHex(parts[0], 2) ||
		!isHex(parts[1], 32) || !isHex(parts[2], 16) || !isHex(parts[3], 2) ||
		strings.Trim(parts[1], "0") == "" || strings.Trim(parts[2], "0") == "" {
		return "", ""
	}
	return parts[1], parts[2]
}

func isHex(s string, n int) bool {
	return len(s) == n && strings.Trim(s, "0123456789abcdef") == ""
}
