//! Undoes a body's `Content-Encoding` as it streams in.

use flate2::write::MultiGzDecoder;
use std::io::{self, Write as _};

/// Compressed bytes are decoded in slices of this many, so that what one slice expands to stays bounded.
const SLICE_BYTES: usize = 4 << 10;

/// A streaming decoder.
pub enum Decoder {
    /// No encoding.
    Identity,
    /// `gzip`, also of several members.
    Gzip(Box<MultiGzDecoder<Vec<u8>>>),
    /// `zstd`, also of several frames.
    Zstd(Box<zstd::stream::write::Decoder<'static, Vec<u8>>>),
}

/// The compression that a body's first bytes show, if it is one that [`Decoder`] knows.
#[must_use]
pub fn compression_of(first_bytes: &[u8]) -> Option<&'static str> {
    match first_bytes {
        [0x1f, 0x8b, ..] => Some("gzip"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Some("zstd"),
        _ => None,
    }
}

impl Decoder {
    /// The decoder of a `Content-Encoding`; `None` for one that is not known.
    #[must_use]
    pub fn of(encoding: Option<&str>) -> Option<Self> {
        match encoding.map(|name| name.trim().to_ascii_lowercase()).as_deref() {
            None | Some("" | "identity") => Some(Self::Identity),
            Some("gzip" | "x-gzip") => Some(Self::Gzip(Box::new(MultiGzDecoder::new(Vec::new())))),
            Some("zstd") => zstd::stream::write::Decoder::new(Vec::new())
                .ok()
                .map(|decoder| Self::Zstd(Box::new(decoder))),
            Some(_) => None,
        }
    }

    /// Decodes some bytes, giving what they yield slice by slice.
    ///
    /// # Errors
    /// When they are not in the encoding, or `each` fails.
    pub fn decode<E: From<io::Error>>(
        &mut self,
        bytes: &[u8],
        mut each: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for slice in bytes.chunks(SLICE_BYTES) {
            match self {
                Self::Identity => each(slice)?,
                Self::Gzip(decoder) => {
                    decoder.write_all(slice)?;
                    decoder.flush()?;
                    each(&std::mem::take(decoder.get_mut()))?;
                }
                Self::Zstd(decoder) => {
                    decoder.write_all(slice)?;
                    decoder.flush()?;
                    each(&std::mem::take(decoder.get_mut()))?;
                }
            }
        }
        Ok(())
    }

    /// The body has ended: what is still held back.
    ///
    /// # Errors
    /// When the encoding is cut short.
    pub fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Identity => Ok(Vec::new()),
            Self::Gzip(decoder) => decoder.finish(),
            Self::Zstd(mut decoder) => {
                decoder.flush()?;
                Ok(decoder.into_inner())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(encoding: Option<&str>, bytes: &[u8]) -> io::Result<Vec<u8>> {
        let mut decoder = Decoder::of(encoding).expect("known");
        let mut out = Vec::new();
        decoder.decode(bytes, |part| {
            out.extend_from_slice(part);
            io::Result::Ok(())
        })?;
        out.extend(decoder.finish()?);
        Ok(out)
    }

    #[test]
    fn every_encoding_gives_the_body_back() {
        let body: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&body).expect("a Vec takes every byte");
        let gzip = gzip.finish().expect("finishes");
        let zstd = zstd::encode_all(&body[..], 1).expect("encodes");
        assert_eq!(decode(None, &body).expect("decodes"), body);
        assert_eq!(decode(Some("GZIP"), &gzip).expect("decodes"), body);
        assert_eq!(decode(Some("zstd"), &zstd).expect("decodes"), body);
        assert!(decode(Some("gzip"), b"no gzip").is_err());
        assert!(decode(Some("gzip"), &gzip[..gzip.len() / 2]).is_err());
        assert!(Decoder::of(Some("br")).is_none());
        assert_eq!(compression_of(&gzip), Some("gzip"));
        assert_eq!(compression_of(&zstd), Some("zstd"));
        assert_eq!(compression_of(b"{\"ops\":[]}"), None);
    }
}
