package config

import "time"

// idleTime is how long the daemon stays without a launch.
func idleTime(s string) string {
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Second || d > 7*24*time.Hour {
		return `must be a time from "1s" to "168h", such as "10m"`
	}
	return ""
}
