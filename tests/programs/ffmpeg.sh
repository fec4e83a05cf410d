commands="ffmpeg"
packages="ffmpeg"
version="ffmpeg -version | cut -d' ' -f1-3"
checks="four encoders with threads, decoded again, filters, sound: framemd5 and files compared"
seconds=400
processes="ffmpeg"

encode() {
    local codec run="ffmpeg -nostdin -v error -y -bitexact"
    $run -f lavfi -i testsrc2=s=640x360:r=25:d=4 -f lavfi -i "sine=440:d=4" -pix_fmt yuv420p -c:v ffv1 -threads 4 -slices 4 -c:a flac -fflags +bitexact source.mkv
    for codec in mpeg4 libx264 libx265 libvpx; do
        $run -i source.mkv -an -c:v $codec -threads 4 $([ $codec != libx264 ] || echo -preset veryfast) \
            $([ $codec != libx265 ] || echo -preset ultrafast -x265-params log-level=none:pools=2) -b:v 500k -fflags +bitexact "$codec.mkv"
        $run -threads 4 -i "$codec.mkv" -f framemd5 - | tail -n +8
    done
    $run -i source.mkv -vf "scale=320:-2,hqdn3d,unsharp,rotate=0.3,drawbox=10:10:50:50,split[a][b];[a]hflip[c];[b][c]hstack,fps=12" -an -f framemd5 - | tail -n +8
    for codec in aac libmp3lame libopus libvorbis pcm_s24le; do
        $run -i source.mkv -vn -af "aecho=0.8:0.9:60:0.3,loudnorm,aresample=48000" -c:a $codec -strict -2 -fflags +bitexact "$codec.mka"
        $run -i "$codec.mka" -f md5 -
    done
    sums ./*.mkv
}
program() { both ffmpeg encode; }
