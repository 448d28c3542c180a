package node

import "github.com/vxswitch/vxswitch/setting/conf"

// was says what to write for keys of earlier versions.
var was = map[string]string{
	"evict":   `is now refuse, which says the opposite: write "refuse": true for "evict": false`,
	"offload": `is now noOffload, which says the opposite: write "noOffload": true for "offload": false`,
}

// Parse reads a configuration in JSON, with comments. The error is of type [conf.Errors]: everything
// that is wrong, with its position in the text and its key.
func Parse(text []byte) (*Config, error) {
	c := new(Config)
	r, err := conf.Read(text, c, was)
	if err == nil {
		err = checker{Report: r, file: true}.check(c)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Check reports everything that is wrong with a configuration, as [conf.Errors] without
// positions. Where a part of it has a Check too, that is about the settings embedded in it alone.
func (c *Config) Check() error { return checker{}.check(c) }

// MarshalJSON writes what [Parse] reads.
func (c Config) MarshalJSON() ([]byte, error) { return conf.Write(c) }

// UnmarshalJSON reads what MarshalJSON writes; see [Parse] for what else it reads. It does not
// check: [Config.Check] does.
func (c *Config) UnmarshalJSON(text []byte) error {
	x := new(Config)
	r, err := conf.Read(text, x, was)
	if err == nil {
		err = r.Err()
	}
	if err == nil {
		*c = *x
	}
	return err
}
