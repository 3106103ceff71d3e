// SPDX-License-Identifier: Apache-2.0

// Seal a payload for hikyaku's outbox (docs/sealed-format.md):
//
//	go run seal.go KEY-ID KEY-FILE STORE MESSAGE-ID < payload
package main

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
)

func gcm(key, nonce, plain []byte, place string) []byte {
	block, err := aes.NewCipher(key)
	if err != nil {
		log.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		log.Fatal(err)
	}
	return aead.Seal(nil, nonce, plain, []byte(place))
}

func random(n int) []byte {
	bytes := make([]byte, n)
	if _, err := rand.Read(bytes); err != nil {
		log.Fatal(err)
	}
	return bytes
}

// Seal gives the value for the column payload; the row's encoding is 'sealed', and its message_id is this one.
func Seal(keyID string, key []byte, store, messageID string, payload []byte) string {
	place := store + "\noutbox.payload\n" + messageID
	sum := sha256.Sum256(append([]byte("hikyaku-check/1\n"+store+"\n"), key...))
	dataKey, keyNonce, nonce := random(32), random(12), random(12)
	body := append([]byte{}, keyNonce...)
	body = append(body, gcm(key, keyNonce, dataKey, "hikyaku-key/1\n"+keyID+"\n"+place)...)
	body = append(body, nonce...)
	body = append(body, gcm(dataKey, nonce, payload, "hikyaku-data/1\n"+place)...)
	return "hk1." + keyID + "." + hex.EncodeToString(sum[:4]) + "." + base64.StdEncoding.EncodeToString(body)
}

func main() {
	text, err := os.ReadFile(os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		log.Fatal(err)
	}
	payload, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(Seal(os.Args[1], key, os.Args[3], os.Args[4], payload))
}
