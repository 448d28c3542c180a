package api

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
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
	return c.changeConfig(ctx, http.MethodPut, "/v1/config", q, config)
}

func (c *Client) changeConfig(ctx context.Context, method, path string, q Query, body any) (x ConfigChange, err error) {
	text, err := c.Do(ctx, method, path, q, body)
	if err != nil {
		return x, err
	}
	return decode[ConfigChange](c, text)
}

// A Part is an element of a list of the configuration.
type Part struct {
	List string // tunnels, ports, policies, segments or vrfs
	Name string // of a segment its VNI
}

func (p Part) path() string {
	return "/v1/config/" + url.PathEscape(p.List) + "/" + url.PathEscape(p.Name)
}

// Part returns an element with defaults.
func (c *Client) Part(ctx context.Context, p Part) ([]byte, error) {
	return c.Do(ctx, http.MethodGet, p.path(), nil, nil)
}

// SetPart adds an element, which has the form of a file, or replaces that with the name, as SetConfig does. With dry it returns
// the differences only.
func (c *Client) SetPart(ctx context.Context, p Part, text []byte, dry bool) (ConfigChange, error) {
	return c.changeConfig(ctx, http.MethodPut, p.path(), dryRun(dry), text)
}

// DeletePart deletes an element that no other refers to. With dry it returns the differences only.
func (c *Client) DeletePart(ctx context.Context, p Part, dry bool) (ConfigChange, error) {
	return c.changeConfig(ctx, http.MethodDelete, p.path(), dryRun(dry), nil)
}

func dryRun(dry bool) Query {
	if dry {
		return Query{"dry-run": "true"}
	}
	return nil
}
