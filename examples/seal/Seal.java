// SPDX-License-Identifier: Apache-2.0
// Seal a payload for hikyaku's outbox (docs/sealed-format.md):
//
//     java Seal.java KEY-ID KEY-FILE STORE MESSAGE-ID < payload
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.security.SecureRandom;
import java.util.Base64;
import java.util.HexFormat;
import javax.crypto.Cipher;
import javax.crypto.spec.GCMParameterSpec;
import javax.crypto.spec.SecretKeySpec;

public class Seal {
    private static final SecureRandom RANDOM = new SecureRandom();

    private static byte[] random(int n) {
        byte[] bytes = new byte[n];
        RANDOM.nextBytes(bytes);
        return bytes;
    }

    private static byte[] gcm(byte[] key, byte[] nonce, byte[] plain, String place) throws GeneralSecurityException {
        Cipher cipher = Cipher.getInstance("AES/GCM/NoPadding");
        cipher.init(Cipher.ENCRYPT_MODE, new SecretKeySpec(key, "AES"), new GCMParameterSpec(128, nonce));
        cipher.updateAAD(place.getBytes(StandardCharsets.UTF_8));
        return cipher.doFinal(plain);
    }

    /** The value for the column payload; the row's encoding is 'sealed', and its message_id is this one. */
    public static String seal(String keyId, byte[] key, String store, String messageId, byte[] payload)
            throws GeneralSecurityException {
        String place = store + "\noutbox.payload\n" + messageId;
        MessageDigest digest = MessageDigest.getInstance("SHA-256");
        digest.update(("hikyaku-check/1\n" + store + "\n").getBytes(StandardCharsets.UTF_8));
        String check = HexFormat.of().formatHex(digest.digest(key), 0, 4);
        byte[] dataKey = random(32), keyNonce = random(12), nonce = random(12);
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes(keyNonce);
        body.writeBytes(gcm(key, keyNonce, dataKey, "hikyaku-key/1\n" + keyId + "\n" + place));
        body.writeBytes(nonce);
        body.writeBytes(gcm(dataKey, nonce, payload, "hikyaku-data/1\n" + place));
        return "hk1." + keyId + "." + check + "." + Base64.getEncoder().encodeToString(body.toByteArray());
    }

    public static void main(String[] args) throws Exception {
        byte[] key = Base64.getDecoder().decode(Files.readString(Path.of(args[1])).trim());
        System.out.print(seal(args[0], key, args[2], args[3], System.in.readAllBytes()));
    }
}
