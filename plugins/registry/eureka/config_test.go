package eureka

import "github.com/coxswain-mesh/coxswain/plugins/internal/strict"

func parse(config []byte) (*Config, error) {
	c, err := strict.Parse(config, defaults())
	if err != nil {
		return nil, err
	}
	return &c, nil
}
