package api

import (
	"context"
	"encoding/json"
	"net/http"
)

// A Difference is one difference between two configurations with defaults.
type Difference struct {
	Op   string          `json:"op"`   // add, del or change
	Path string          `json:"path"` // such as segments[100].members[tap0].isolated
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

// A ConfigChange is the answer to a new configuration.
type ConfigChange struct {
	Applied     bool         `json:"applied"` // false for a dry run
	Differences []Difference `json:"differences"`
}

// SetConfig applies a configuration, which has the form of a file, under traffic. It stays until the node reads its file again.
// An error changes nothing; for wrong settings it is an [*Error] with a line for each.
func (c *Client) SetConfig(ctx context.Context, config []byte) (ConfigChange, error) {
	return c.setConfig(ctx, nil, config)
}

// CheckConfig returns the differences that SetConfig would make, and its errors except those that only the system can detect: a
// missing address or device.
func (c *Client) CheckConfig(ctx context.Context, config []byte) (ConfigChange, error) {
	return c.setConfig(ctx, Query{"dry-run": "true"}, config)
}

func (c *Client) setConfig(ctx context.Context, q Query, config []byte) (x ConfigChange, err error) {
	text, err := c.Do(ctx, http.MethodPut, "/v1/config", q, config)
	if err != nil {
		return x, err
	}
	return decode[ConfigChange](c, text)
}
