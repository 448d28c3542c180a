package node

// Parse reads a configuration in JSON. The error is of type [Errors]: everything that is
// wrong, with its position in the text and its key.
func Parse(text []byte) (*Config, error) {
	s := &source{text: text}
	c := new(Config)
	if s.decode(c) {
		c.check(s, false)
	}
	if err := s.err(); err != nil {
		return nil, err
	}
	return c, nil
}

// Check reports everything that is wrong with a configuration, as [Errors] without
// positions. Where a part of it has a Check too, that is about the settings embedded in it alone.
func (c *Config) Check() error { return c.errors(false) }

func (c *Config) errors(begun bool) error {
	s := new(source)
	c.check(s, begun)
	return s.err()
}
