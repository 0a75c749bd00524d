package config

// Log is [log]: how long the lines about runs are kept, which the audit log has
// as well.
type Log struct {
	Days  int64 // of which there are files, today's included
	Bytes int64 // of all files together
}

func logSettings() []setting {
	return []setting{
		count("log.days", func(c *Config) *int64 { return &c.Log.Days }, 1, 3650),
		count("log.bytes", func(c *Config) *int64 { return &c.Log.Bytes }, 1<<24, 1<<40),
	}
}
