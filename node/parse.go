package node

import "github.com/vxswitch/vxswitch/setting/conf"

// renamed has the advice for keys of earlier versions.
var renamed = map[string]string{
	"evict":   `is now refuse, with the opposite meaning: write "refuse": true for "evict": false`,
	"offload": `is now noOffload, with the opposite meaning: write "noOffload": true for "offload": false`,
}

// Parse reads a configuration in JSON with comments. The error is of type [setting.Errors], each with its position in
// the text and its key.
func Parse(text []byte) (*Config, error) {
	c := new(Config)
	r, err := ParseIn(text, c, c)
	if err == nil {
		err = r.Err()
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// ParseIn reads a file that has sections of a program beside a configuration: to is a pointer to a struct that embeds the Config to
// which c points, without a key. The report has the errors of all types and those in the configuration; the program adds those in
// its sections. The error is that of [conf.Read]: the text is not JSON.
func ParseIn(text []byte, to any, c *Config) (*conf.Report, error) {
	r, err := conf.Read(text, to, renamed)
	if err == nil {
		checker{Report: r, file: true}.check(c)
	}
	return r, err
}

// Check returns the errors in a configuration as [setting.Errors] without positions. The Check methods of its parts
// only check the settings embedded in them.
func (c *Config) Check() error { return checker{}.check(c) }

// MarshalJSON writes what [Parse] reads.
func (c Config) MarshalJSON() ([]byte, error) { return conf.Write(c) }

// UnmarshalJSON reads what MarshalJSON writes, and comments as [Parse] does. It does not call [Config.Check].
func (c *Config) UnmarshalJSON(text []byte) error {
	x := new(Config)
	r, err := conf.Read(text, x, renamed)
	if err == nil {
		err = r.Err()
	}
	if err == nil {
		*c = *x
	}
	return err
}
