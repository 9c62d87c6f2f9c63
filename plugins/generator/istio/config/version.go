package config

import (
	"crypto/sha256"
	"encoding/hex"

	pb "github.com/coxswain-mesh/coxswain/sdk/proto"
)

// version says briefly what a row holds.
func version(row *pb.Row) string {
	sum := sha256.Sum256(row.Payload)
	return hex.EncodeToString(sum[:8])
}
