public class Sleep {
    public static void main(String[] args) throws Exception {
        Thread.sleep(60_000);
    }
}
